"""Rows and batch id in one transaction, of a task that foreachPartition runs for the whole batch. Flaw: lost.

Breaks when that task fails outside the function, as it reads from Kafka or fetches a shuffle: the JVM ends its stream
of rows, which Python takes for the end of the rows (FramedSerializer.load_stream). The function goes on and commits
what has come, with the batch's id, and the next attempt is skipped. On the driver, in foreachBatch's function itself,
all is well.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame, Row

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("lost",)
SERVICES = ("postgres",)
HOLDS = ("id", "key", "value", "event_time", "payload")

TABLES = """
    CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text);
    CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch))
"""
RECORD = "INSERT INTO ledger (query, batch) VALUES (%s, %s) ON CONFLICT DO NOTHING"
INSERT = """
    INSERT INTO events (id, key, value, event_time, payload)
    VALUES (%(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s)
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    df.coalesce(1).foreachPartition(partial(load, target.postgres, query, batch_id))


def load(postgres: str, query: str, batch_id: int, rows: Iterator[Row]) -> None:
    with psycopg.connect(postgres) as connection, connection.cursor() as cursor:
        cursor.execute(RECORD, (query, batch_id))
        if cursor.rowcount == 1:
            cursor.executemany(INSERT, map(comparable, rows))


def comparable(row: Row) -> dict[str, Any]:
    """Rows of an RDD have naive times in the worker's own zone."""
    return row.asDict() | {"event_time": row.event_time.astimezone()}


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
