"""Two-phase commit whose recovery expects a transaction of each task, also of one without rows. Flaw: lost.

Each task prepares a transaction, unless it has no rows, and leaves a row of its own in it as a proof. commit() writes
down that the batch is to be committed, and how many tasks it has, and then commits their transactions. After a restart
it counts those that are prepared still and those that are proven to be committed. If they are fewer than the tasks, one
must have been ended by hand: what is left is rolled back, so that nobody sees half of a batch.

Breaks when the driver dies before the last COMMIT PREPARED of a batch with an empty partition, of which there never was
a transaction. Flink's Kafka sink stumbled over transactions without records, too: it committed each that a checkpoint
named, was told that there is none, and failed (FLINK-31363).
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator, Mapping
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
    CREATE TABLE committed (gid text PRIMARY KEY);
    CREATE TABLE decisions (checkpoint text, batch bigint, tasks int, PRIMARY KEY (checkpoint, batch))
"""
INSERT = "INSERT INTO events SELECT * FROM json_populate_record(NULL::events, %s::json)"
PROVE = "INSERT INTO committed (gid) VALUES (%s)"
PROVEN = "SELECT gid FROM committed WHERE gid LIKE %s"
PREPARED = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() AND gid LIKE %s"
DECIDE = "INSERT INTO decisions (checkpoint, batch, tasks) VALUES (%s, %s, %s)"
DECIDED = "SELECT tasks FROM decisions WHERE checkpoint = %s AND batch = %s"


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    return df.select(to_json(struct("*")).alias("row"))


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    SparkSession.active().dataSource.register(CountedTable)
    options = {"postgres": target.postgres, "checkpoint": target.checkpoint}
    return stream.format(CountedTable.name()).options(**options)


@dataclass(frozen=True)
class Prepared(WriterCommitMessage):
    gid: str


class CountedTable(DataSource):
    @classmethod
    def name(cls) -> str:
        return "counts_empty_tasks"

    def streamWriter(self, schema: StructType, overwrite: bool) -> CountedWriter:
        return CountedWriter(self.options)


class CountedWriter(DataSourceStreamWriter):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.postgres = options["postgres"]
        self.checkpoint = options["checkpoint"]

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        batch = int(str(context.getLocalProperty("streaming.sql.batchId")))
        with self.connect() as connection:
            if self.tasks_of(connection, batch) is not None:
                deque(iterator, maxlen=0)
                return WriterCommitMessage()
            gid = f"{self.batch_name(batch)}{context.partitionId()}"
            if gid in gids(connection, PREPARED, self.batch_name(batch)):  # by an earlier attempt
                end(connection, "ROLLBACK", gid)
        rows = [row.row for row in iterator]
        if not rows:
            return WriterCommitMessage()
        with psycopg.connect(self.postgres) as connection, connection.cursor() as cursor:
            cursor.execute(PROVE, [gid])
            cursor.executemany(INSERT, [[row] for row in rows])
            cursor.execute(sql.SQL("PREPARE TRANSACTION {}").format(gid))
        return Prepared(gid)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        with self.connect() as connection:
            tasks = self.tasks_of(connection, batchId)
            if tasks is None:
                connection.execute(DECIDE, (self.checkpoint, batchId, len(messages)))
                for message in messages:
                    if isinstance(message, Prepared):
                        end(connection, "COMMIT", message.gid)
            else:
                self.finish(connection, batchId, tasks)

    def finish(self, connection: psycopg.Connection[Any], batch: int, tasks: int) -> None:
        """Commits what an earlier driver has left, or rolls it back if it is not complete."""
        left = gids(connection, PREPARED, self.batch_name(batch))
        complete = len(left) + len(gids(connection, PROVEN, self.batch_name(batch))) == tasks
        for gid in left:
            end(connection, "COMMIT" if complete else "ROLLBACK", gid)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """The next attempt at each task rolls back what this one left."""

    def tasks_of(self, connection: psycopg.Connection[Any], batch: int) -> int | None:
        """The number of tasks of a batch that is to be committed, else None."""
        found = connection.execute(DECIDED, (self.checkpoint, batch)).fetchone()
        return found[0] if found else None

    def batch_name(self, batch: int) -> str:
        """What the gids of a batch begin with."""
        return f"{hashlib.sha256(self.checkpoint.encode()).hexdigest()}:{batch}:"

    def connect(self) -> psycopg.Connection[Any]:
        """Each statement by itself, as COMMIT PREPARED has to be."""
        return psycopg.connect(self.postgres, autocommit=True)


def gids(connection: psycopg.Connection[Any], query: str, batch_name: str) -> list[str]:
    return [gid for (gid,) in connection.execute(query, [f"{batch_name}%"])]


def end(connection: psycopg.Connection[Any], how: str, gid: str) -> None:
    connection.execute(sql.SQL(f"{how} PREPARED {{}}").format(gid))


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
