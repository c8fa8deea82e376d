"""Two-phase commit whose transactions have names that a restart does not find again. Flaws: hanging, lost.

Each task prepares a transaction, named after the driver's run, the batch and the task; commit() writes down that the
batch is decided, and then commits them. A driver that is started again has another run: it skips the decided batch, as
it should, looks for transactions of its own name, finds none, as after a commit that was done, and goes on. Those of
the first run stay prepared for ever.

Breaks when the driver dies between the decision and the last COMMIT PREPARED; one that dies before the decision leaves
transactions hanging. Seen in the StarRocks connector for Flink, whose labels were not kept in the checkpoint, so that
prepared transactions lingered (StarRocks/starrocks-connector-for-apache-flink#271).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
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
FLAW = ("hanging", "lost")
SERVICES = ("postgres",)
HOLDS = ("id", "key", "value", "event_time", "payload")

TABLES = """
    CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text);
    CREATE TABLE decisions (checkpoint text, batch bigint, tasks int, PRIMARY KEY (checkpoint, batch))
"""
INSERT = "INSERT INTO events SELECT * FROM json_populate_record(NULL::events, %s::json)"
DECIDE = "INSERT INTO decisions (checkpoint, batch, tasks) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
DECIDED = "SELECT tasks FROM decisions WHERE checkpoint = %s AND batch = %s"


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    return df.select(to_json(struct("*")).alias("row"))


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    SparkSession.active().dataSource.register(RunTable)
    options = {"postgres": target.postgres, "checkpoint": target.checkpoint, "run": uuid4().hex}
    return stream.format(RunTable.name()).options(**options)


class RunTable(DataSource):
    @classmethod
    def name(cls) -> str:
        return "prepared_under_new_names"

    def streamWriter(self, schema: StructType, overwrite: bool) -> RunWriter:
        return RunWriter(self.options)


class RunWriter(DataSourceStreamWriter):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.postgres = options["postgres"]
        self.checkpoint = options["checkpoint"]
        self.run = options["run"]

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        batch = int(str(context.getLocalProperty("streaming.sql.batchId")))
        with psycopg.connect(self.postgres, autocommit=True) as connection:
            decided = connection.execute(DECIDED, (self.checkpoint, batch)).fetchone() is not None
        if decided:
            deque(iterator, maxlen=0)
            return WriterCommitMessage()
        with psycopg.connect(self.postgres) as connection, connection.cursor() as cursor:
            cursor.executemany(INSERT, [[row.row] for row in iterator])
            cursor.execute(sql.SQL("PREPARE TRANSACTION {}").format(self.gid(batch, context.partitionId())))
        return WriterCommitMessage()

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        with psycopg.connect(self.postgres, autocommit=True) as connection:
            connection.execute(DECIDE, (self.checkpoint, batchId, len(messages)))
            for task in range(connection.execute(DECIDED, (self.checkpoint, batchId)).fetchone()[0]):
                end(connection, "COMMIT", self.gid(batchId, task))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        with psycopg.connect(self.postgres, autocommit=True) as connection:
            if connection.execute(DECIDED, (self.checkpoint, batchId)).fetchone() is None:
                for task in range(len(messages)):
                    end(connection, "ROLLBACK", self.gid(batchId, task))

    def gid(self, batch: int, task: int) -> str:
        return f"{self.run}:{batch}:{task}"


def end(connection: psycopg.Connection[Any], how: str, gid: str) -> None:
    with suppress(psycopg.errors.UndefinedObject):  # it was ended before
        connection.execute(sql.SQL(f"{how} PREPARED {{}}").format(gid))


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
