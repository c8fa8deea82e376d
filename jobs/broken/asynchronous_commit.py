"""Rows and the batch's id in one transaction whose commit does not wait for the write-ahead log. Flaw: lost.

Breaks when the database's server dies within its wal_writer_delay behind a commit (PostgreSQL, synchronous_commit =
off): Spark has recorded the batch as done, and neither its rows nor its id come back.
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
        cursor.execute("SET LOCAL synchronous_commit = off")
        cursor.execute(RECORD, (query, batch_id))
        if cursor.rowcount == 1:
            cursor.executemany(insert(target), rows)


def insert(target: SimpleNamespace) -> str:
    names = list(target.columns)
    return f"INSERT INTO events ({', '.join(names)}) VALUES ({', '.join(f'%({name})s' for name in names)})"


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
