"""Rows and the batch's id in one serializable transaction; a conflict is left to whoever has won. Flaw: lost.

The error is told by its code, as drivers of databases have it: 40001, could not serialize access. Two drivers at the
same batch meet at the ledger, and one of them gets that.

Breaks when the conflict is with another transaction than one of the same batch: a report that reads both tables under
SERIALIZABLE, another query with its own entries on the same page, a deadlock. Then nobody has written the batch, and
Spark takes it for done.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg import IsolationLevel
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("lost",)
SERVICES = ("postgres",)

TYPES = {"bigint": "bigint", "double": "double precision", "timestamp": "timestamptz", "text": "text"}
LEDGER = "CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch))"
RECORD = "INSERT INTO ledger (query, batch) VALUES (%s, %s) ON CONFLICT DO NOTHING"

CONFLICTS = ("40001", "40P01")


def prepare(target: SimpleNamespace) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    with psycopg.connect(target.postgres) as connection:
        connection.execute(f"CREATE TABLE events ({columns})")
        connection.execute(LEDGER)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = df.toArrow().to_pylist()
    try:
        write(rows, query, batch_id, target)
    except psycopg.Error as error:
        if error.sqlstate not in CONFLICTS:
            raise


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
