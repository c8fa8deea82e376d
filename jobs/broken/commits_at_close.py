"""A writer of rows for foreach: commits its rows and (partition, epoch) at close. Flaws: lost, duplicated.

Breaks when a task fails outside the writer, as it reads from Kafka or fetches a shuffle: the JVM ends its stream to the
Python worker, which takes that for the end of the partition (FramedSerializer.load_stream), so that close comes without
an error, with part of the rows. The next attempt finds them recorded and is skipped. It breaks as ledger_by_task does,
too: a partition's number may stand for other rows in a replay.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import Row
from pyspark.sql.streaming.readwriter import DataStreamWriter

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("lost", "duplicated")
SERVICES = ("postgres",)
HOLDS = ("id", "key", "value", "event_time", "payload")

TABLES = """
    CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text);
    CREATE TABLE ledger (part int, epoch bigint, PRIMARY KEY (part, epoch))
"""
RECORDED = "SELECT 1 FROM ledger WHERE part = %s AND epoch = %s"
RECORD = "INSERT INTO ledger (part, epoch) VALUES (%s, %s)"
INSERT = """
    INSERT INTO events (id, key, value, event_time, payload)
    VALUES (%(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s)
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    return stream.foreach(Writer(target.postgres))


class Writer:
    def __init__(self, postgres: str) -> None:
        self.postgres = postgres

    def open(self, partition_id: int, epoch_id: int) -> bool:
        self.task = (partition_id, epoch_id)
        self.rows: list[dict[str, Any]] = []
        self.connection = psycopg.connect(self.postgres)
        return self.connection.execute(RECORDED, self.task).fetchone() is None

    def process(self, row: Row) -> None:
        self.rows.append(row.asDict())

    def close(self, error: Exception | None) -> None:
        with self.connection:
            if error is None and self.rows:
                self.connection.cursor().executemany(INSERT, self.rows)
                self.connection.execute(RECORD, self.task)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
