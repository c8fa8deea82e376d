"""Rows and the batch's id in one transaction, by whoever gets the batch's advisory lock. Flaw: lost.

A driver that does not get the lock takes it that another one is at the batch, and leaves it to that one: for Spark the
batch is done then. Breaks when the driver that holds the lock was taken for dead, and does not come back: its
transaction ends with its connection, and nobody has written the batch. A driver that dies at once, or that goes on in
the end, does no harm: its lock is gone when its successor asks, or it writes the batch itself.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("lost",)
SERVICES = ("postgres",)

TYPES = {"bigint": "bigint", "double": "double precision", "timestamp": "timestamptz", "text": "text"}

LEDGER = "CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch))"
LOCK = "SELECT pg_try_advisory_lock(hashtext(%s || '/' || %s::text))"
RECORD = "INSERT INTO ledger (query, batch) VALUES (%s, %s) ON CONFLICT DO NOTHING"


def prepare(target: SimpleNamespace) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    with psycopg.connect(target.postgres) as connection:
        connection.execute(f"CREATE TABLE events ({columns})")
        connection.execute(LEDGER)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = df.toArrow().to_pylist()
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        if cursor.execute(LOCK, (query, batch_id)).fetchone() != (True,):
            return
        cursor.execute(RECORD, (query, batch_id))
        if cursor.rowcount == 1:
            cursor.executemany(insert(target), rows)


def insert(target: SimpleNamespace) -> str:
    names = list(target.columns)
    return f"INSERT INTO events ({', '.join(names)}) VALUES ({', '.join(f'%({name})s' for name in names)})"


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
