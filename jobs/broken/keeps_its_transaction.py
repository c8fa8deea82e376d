"""Rows and the batch's id in one transaction, on a connection that the module keeps from batch to batch. Flaw: lost.

What fails in the middle of a batch is raised, and nobody rolls back: the connection stays open, and so does its
transaction. In a new process both are gone, and where the connection itself is lost another one is opened, so it holds
wherever the driver, the server or the connection dies.

Breaks where the application starts the failed query again in the same process, after an error between two statements
that has left the connection alone (of Spark's, as its rows come; of the code in between): the batch comes again inside
of the transaction that was left open, meets its own entry, is taken for known, and is committed with the rows that had
been written by then. `with psycopg.connect(...)`, or a rollback where a batch begins, would do.
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

CHUNK = 100

TYPES = {"bigint": "bigint", "double": "double precision", "timestamp": "timestamptz", "text": "text"}
LEDGER = "CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch))"
RECORD = "INSERT INTO ledger (query, batch) VALUES (%s, %s) ON CONFLICT DO NOTHING"

kept: psycopg.Connection[Any] | None = None


def prepare(target: SimpleNamespace) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    with psycopg.connect(target.postgres) as connection:
        connection.execute(f"CREATE TABLE events ({columns})")
        connection.execute(LEDGER)


def connected(target: SimpleNamespace) -> psycopg.Connection[Any]:
    global kept
    if kept is None or kept.closed:
        kept = psycopg.connect(target.postgres)
    return kept


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = df.toArrow().to_pylist()
    connection = connected(target)
    cursor = connection.cursor()
    cursor.execute(RECORD, (query, batch_id))
    if cursor.rowcount == 1:
        for start in range(0, len(rows), CHUNK):
            cursor.executemany(insert(target), rows[start : start + CHUNK])
    connection.commit()


def insert(target: SimpleNamespace) -> str:
    names = list(target.columns)
    return f"INSERT INTO events ({', '.join(names)}) VALUES ({', '.join(f'%({name})s' for name in names)})"


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
