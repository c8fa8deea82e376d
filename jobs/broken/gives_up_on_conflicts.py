"""A right ledger in a serializable transaction, which is tried three times when others get in its way. Flaw: lost.

Behind the third try the loop just ends, the function returns, and Spark takes the batch for written. One conflict, or
two, are got over; a database that is away, or a connection that is lost, raises another error, which nobody catches.

Breaks when three tries in a row come to nothing: a busy table under SERIALIZABLE, a deadlock that comes again.
"""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg import IsolationLevel
from psycopg.errors import DeadlockDetected, SerializationFailure
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("lost",)
SERVICES = ("postgres",)

TYPES = {"bigint": "bigint", "double": "double precision", "timestamp": "timestamptz", "text": "text"}

LEDGER = "CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch))"
RECORD = "INSERT INTO ledger (query, batch) VALUES (%s, %s) ON CONFLICT DO NOTHING"

TRIES = 3
FIRST_WAIT = 0.1


def prepare(target: SimpleNamespace) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    with psycopg.connect(target.postgres) as connection:
        connection.execute(f"CREATE TABLE events ({columns})")
        connection.execute(LEDGER)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = df.toArrow().to_pylist()
    for number in range(TRIES):
        try:
            write(rows, query, batch_id, target)
            break
        except (SerializationFailure, DeadlockDetected):
            time.sleep(FIRST_WAIT * 2**number)


def write(rows: list[dict[str, Any]], query: str, batch_id: int, target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        connection.isolation_level = IsolationLevel.SERIALIZABLE
        cursor.execute(RECORD, (query, batch_id))
        if cursor.rowcount == 1:
            cursor.executemany(insert(target), rows)


def insert(target: SimpleNamespace) -> str:
    names = list(target.columns)
    return f"INSERT INTO events ({', '.join(names)}) VALUES ({', '.join(f'%({name})s' for name in names)})"


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
