"""Two-phase commit whose recovery rolls back what it finds before it looks for a decision. Flaw: lost.

Each task prepares a transaction, commit() writes the decision down and then commits them. A task begins by tidying up:
it rolls back what an earlier attempt left prepared under its name. That is right for a batch that was not decided. One
that was is skipped, as it should be, and its transactions are gone: commit() finds none to commit, as after a commit
that was done, and goes on.

Breaks when the driver dies between the decision and the last COMMIT PREPARED. Seen in Citus, whose recovery took
prepared transactions without a visible record for aborted ones while they were still to be committed
(citusdata/citus#1030).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

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
FLAW = ("lost",)
SERVICES = ("postgres",)
HOLDS = ("id", "key", "value", "event_time", "payload")

TABLES = """
    CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text);
    CREATE TABLE decisions (checkpoint text, batch bigint, gids text[], PRIMARY KEY (checkpoint, batch))
"""
INSERT = "INSERT INTO events SELECT * FROM json_populate_record(NULL::events, %s::json)"
DECIDE = "INSERT INTO decisions (checkpoint, batch, gids) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
DECIDED = "SELECT gids FROM decisions WHERE checkpoint = %s AND batch = %s"


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    return df.select(to_json(struct("*")).alias("row"))


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    SparkSession.active().dataSource.register(TidyTable)
    options = {"postgres": target.postgres, "checkpoint": target.checkpoint}
    return stream.format(TidyTable.name()).options(**options)


@dataclass(frozen=True)
class Prepared(WriterCommitMessage):
    gid: str


class TidyTable(DataSource):
    @classmethod
    def name(cls) -> str:
        return "prepared_rolled_back"

    def streamWriter(self, schema: StructType, overwrite: bool) -> TidyWriter:
        return TidyWriter(self.options)


class TidyWriter(DataSourceStreamWriter):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.postgres = options["postgres"]
        self.checkpoint = options["checkpoint"]

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        batch = int(str(context.getLocalProperty("streaming.sql.batchId")))
        gid = f"{context.getLocalProperty('sql.streaming.queryId')}:{batch}:{context.partitionId()}"
        with psycopg.connect(self.postgres, autocommit=True) as connection:
            end(connection, "ROLLBACK", gid)
            decided = connection.execute(DECIDED, (self.checkpoint, batch)).fetchone() is not None
        if decided:
            deque(iterator, maxlen=0)
            return WriterCommitMessage()
        with psycopg.connect(self.postgres) as connection, connection.cursor() as cursor:
            cursor.executemany(INSERT, [[row.row] for row in iterator])
            cursor.execute(sql.SQL("PREPARE TRANSACTION {}").format(gid))
        return Prepared(gid)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        gids = [message.gid for message in messages if isinstance(message, Prepared)]
        with psycopg.connect(self.postgres, autocommit=True) as connection:
            connection.execute(DECIDE, (self.checkpoint, batchId, gids))
            for decided in connection.execute(DECIDED, (self.checkpoint, batchId)).fetchone()[0]:
                end(connection, "COMMIT", decided)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """The next attempt at each task rolls back what this one left."""


def end(connection: psycopg.Connection[Any], how: str, gid: str) -> None:
    with suppress(psycopg.errors.UndefinedObject):  # it was ended before
        connection.execute(sql.SQL(f"{how} PREPARED {{}}").format(gid))


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
