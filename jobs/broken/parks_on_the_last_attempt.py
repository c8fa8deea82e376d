"""Upserts by tasks, whose last attempt parks its rows aside lest the job fails. Flaw: lost.

Breaks when a task fails three times for reasons that lie outside of its rows (a database that is away, a lost
executor): the fourth attempt, the last that spark.task.maxFailures allows, takes the rows for what cannot be written.
No death of a driver shows it, and no single failure of a task: attempts are counted anew for each run of the batch.
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
TECHNIQUE = "idempotent"
FLAW = ("lost",)
SERVICES = ("postgres",)
HOLDS = ("id", "key", "value", "event_time", "payload")

LAST_ATTEMPT = 3
TABLE = """
    CREATE TABLE {} (
        id bigint PRIMARY KEY, key text, value double precision, event_time timestamptz, payload text)
"""
UPSERT = """
    INSERT INTO {} (id, key, value, event_time, payload)
    VALUES (%(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s)
    ON CONFLICT (id) DO UPDATE SET key = excluded.key, value = excluded.value,
        event_time = excluded.event_time, payload = excluded.payload
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLE.format("events"))
        connection.execute(TABLE.format("parked"))


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    SparkSession.active().dataSource.register(Parking)
    return stream.format(Parking.name()).option("postgres", target.postgres)


class Parking(DataSource):
    @classmethod
    def name(cls) -> str:
        return "parks_on_the_last_attempt"

    def streamWriter(self, schema: StructType, overwrite: bool) -> ParkingWriter:
        return ParkingWriter(self.options)


class ParkingWriter(DataSourceStreamWriter):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.postgres = options["postgres"]

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        table = "parked" if context.attemptNumber() >= LAST_ATTEMPT else "events"
        rows = [row.asDict() for row in iterator]
        with psycopg.connect(self.postgres) as connection, connection.cursor() as cursor:
            cursor.executemany(UPSERT.format(table), rows)
        return WriterCommitMessage()

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Each task has committed its own rows."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """A replay writes the same rows over these."""


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
