"""A ledger kept by (batch, task): each task writes its rows and its number in one transaction. Flaws: lost, duplicated.

Breaks when the driver dies while some tasks are done and others are not: the replay may deal the Kafka partitions to
other tasks, so that a recorded number stands for other rows. Those are skipped, and the written ones come again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark import TaskContext
from pyspark.sql import Row, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("lost", "duplicated")
SERVICES = ("postgres",)
HOLDS = ("id", "key", "value", "event_time", "payload")

TABLES = """
    CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text);
    CREATE TABLE ledger (query text, batch bigint, task int, PRIMARY KEY (query, batch, task))
"""
RECORD = "INSERT INTO ledger (query, batch, task) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
INSERT = """
    INSERT INTO events (id, key, value, event_time, payload)
    VALUES (%(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s)
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    SparkSession.active().dataSource.register(TaskLedger)
    return stream.format(TaskLedger.name()).option("postgres", target.postgres)


class TaskLedger(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ledger_by_task"

    def streamWriter(self, schema: StructType, overwrite: bool) -> TaskLedgerWriter:
        return TaskLedgerWriter(self.options)


class TaskLedgerWriter(DataSourceStreamWriter):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.postgres = options["postgres"]

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        query = context.getLocalProperty("sql.streaming.queryId")
        batch = context.getLocalProperty("streaming.sql.batchId")
        rows = [row.asDict() for row in iterator]
        with psycopg.connect(self.postgres) as connection, connection.cursor() as cursor:
            cursor.execute(RECORD, (query, batch, context.partitionId()))
            if cursor.rowcount == 1:
                cursor.executemany(INSERT, rows)
        return WriterCommitMessage()

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Each task has committed its own rows."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """There is nothing to take back."""


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
