"""A ledger of what each task has written, with the task's attempt in its key. Flaw: duplicated.

Breaks when a task dies, or fails, after its transaction's commit: Spark attempts it again, and the second attempt does
not find the entry of the first. A driver's death cannot show it: the replay's tasks begin with attempt 0 again.
"""

from __future__ import annotations

import hashlib
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
FLAW = ("duplicated",)
SERVICES = ("postgres",)
HOLDS = ("id", "key", "value", "event_time", "payload")

TABLES = """
    CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text);
    CREATE TABLE ledger (query text, batch bigint, content text, attempt int,
        PRIMARY KEY (query, batch, content, attempt))
"""
RECORD = "INSERT INTO ledger (query, batch, content, attempt) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING"
INSERT = """
    INSERT INTO events (id, key, value, event_time, payload)
    VALUES (%(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s)
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    SparkSession.active().dataSource.register(AttemptLedger)
    return stream.format(AttemptLedger.name()).option("postgres", target.postgres)


class AttemptLedger(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ledger_by_attempt"

    def streamWriter(self, schema: StructType, overwrite: bool) -> AttemptLedgerWriter:
        return AttemptLedgerWriter(self.options)


class AttemptLedgerWriter(DataSourceStreamWriter):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.postgres = options["postgres"]

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        query = context.getLocalProperty("sql.streaming.queryId")
        batch = context.getLocalProperty("streaming.sql.batchId")
        rows = [row.asDict() for row in iterator]
        # The rows themselves, not the task's number: a replay may deal the Kafka partitions to other tasks.
        content = hashlib.sha256(repr(sorted(row["id"] for row in rows)).encode()).hexdigest()
        with psycopg.connect(self.postgres) as connection, connection.cursor() as cursor:
            cursor.execute(RECORD, (query, batch, content, context.attemptNumber()))
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
