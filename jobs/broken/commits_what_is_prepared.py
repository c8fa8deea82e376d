"""Two-phase commit whose recovery commits all that it finds prepared of a decided batch. Flaw: duplicated.

Each task prepares a transaction, commit() writes down that the batch is decided, commits what the tasks have handed
over, and rolls back what else is prepared: an earlier attempt has left it. In the recovery of a decided batch no task
hands anything over; then all that is prepared of the batch is committed. The decision does not say what it decided.

Breaks when something is left over, by a task that fails behind its transaction or by a driver that dies, and then the
driver dies between the decision and the last COMMIT PREPARED: the recovery commits the leftovers, too. Each of the two
alone does no harm.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from pyspark import TaskContext
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.functions import struct, to_json
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

GUARANTEE = "exactly-once"
TECHNIQUE = "two-phase commit"
FLAW = ("duplicated",)
SERVICES = ("postgres",)
HOLDS = ("id", "key", "value", "event_time", "payload")

TABLES = """
    CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text);
    CREATE TABLE decisions (checkpoint text, batch bigint, PRIMARY KEY (checkpoint, batch))
"""
INSERT = "INSERT INTO events SELECT * FROM json_populate_record(NULL::events, %s::json)"
DECIDE = "INSERT INTO decisions (checkpoint, batch) VALUES (%s, %s) ON CONFLICT DO NOTHING"
DECIDED = "SELECT 1 FROM decisions WHERE checkpoint = %s AND batch = %s"
PREPARED = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() AND starts_with(gid, %s) ORDER BY gid"


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    return df.select(to_json(struct("*")).alias("row"))


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    SparkSession.active().dataSource.register(GenerousTable)
    options = {"postgres": target.postgres, "checkpoint": target.checkpoint}
    return stream.format(GenerousTable.name()).options(**options)


@dataclass(frozen=True)
class Prepared(WriterCommitMessage):
    gid: str


class GenerousTable(DataSource):
    @classmethod
    def name(cls) -> str:
        return "commits_what_is_prepared"

    def streamWriter(self, schema: StructType, overwrite: bool) -> GenerousWriter:
        return GenerousWriter(self.options)


class GenerousWriter(DataSourceStreamWriter):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.postgres = options["postgres"]
        self.checkpoint = options["checkpoint"]

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        batch = int(str(context.getLocalProperty("streaming.sql.batchId")))
        with psycopg.connect(self.postgres, autocommit=True) as connection:
            decided = connection.execute(DECIDED, (self.checkpoint, batch)).fetchone() is not None
        if decided:
            deque(iterator, maxlen=0)
            return WriterCommitMessage()
        gid = f"{batch}:{context.partitionId()}:{uuid4().hex}"
        with psycopg.connect(self.postgres) as connection, connection.cursor() as cursor:
            cursor.executemany(INSERT, [[row.row] for row in iterator])
            cursor.execute(sql.SQL("PREPARE TRANSACTION {}").format(gid))
        return Prepared(gid)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        gids = [message.gid for message in messages if isinstance(message, Prepared)]
        with psycopg.connect(self.postgres, autocommit=True) as connection:
            first = connection.execute(DECIDE, (self.checkpoint, batchId)).rowcount == 1
            for gid in gids if first else prepared(connection, batchId):
                end(connection, "COMMIT", gid)
            for gid in prepared(connection, batchId):
                end(connection, "ROLLBACK", gid)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """What an attempt leaves is rolled back by the next one that is decided."""


def prepared(connection: psycopg.Connection[Any], batch: int) -> list[str]:
    return [gid for (gid,) in connection.execute(PREPARED, [f"{batch}:"])]


def end(connection: psycopg.Connection[Any], how: str, gid: str) -> None:
    connection.execute(sql.SQL(f"{how} PREPARED {{}}").format(gid))


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
