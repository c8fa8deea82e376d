"""A right ledger whose rows go through a buffer of the module, flushed whenever it has twenty. Flaw: duplicated.

A flush that fails leaves its rows in the buffer, and the transaction is rolled back. In a new process the buffer is
empty, so it holds wherever the driver dies.

Breaks when the application starts the failed query again in the same process, as a loop around awaitTermination()
does: the batch comes again with all of its rows, behind those that are still in the buffer.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("duplicated",)
SERVICES = ("postgres",)

FULL = 20

TYPES = {"bigint": "bigint", "double": "double precision", "timestamp": "timestamptz", "text": "text"}
LEDGER = "CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch))"
RECORD = "INSERT INTO ledger (query, batch) VALUES (%s, %s) ON CONFLICT DO NOTHING"

buffer: list[dict[str, Any]] = []


def prepare(target: SimpleNamespace) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    with psycopg.connect(target.postgres) as connection:
        connection.execute(f"CREATE TABLE events ({columns})")
        connection.execute(LEDGER)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = df.toArrow().to_pylist()
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.execute(RECORD, (query, batch_id))
        if cursor.rowcount == 0:
            return
        for row in rows:
            buffer.append(row)
            if len(buffer) == FULL:
                flush(cursor, target)
        flush(cursor, target)


def flush(cursor: psycopg.Cursor[Any], target: SimpleNamespace) -> None:
    cursor.executemany(insert(target), buffer)
    buffer.clear()


def insert(target: SimpleNamespace) -> str:
    names = list(target.columns)
    return f"INSERT INTO events ({', '.join(names)}) VALUES ({', '.join(f'%({name})s' for name in names)})"


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
