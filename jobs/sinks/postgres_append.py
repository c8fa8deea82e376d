"""A plain append in one transaction a batch: at-least-once.

Nothing is lost: write_batch returns only after its commit, so the query's commit log never has a batch that the table
lacks. Nothing tells a batch that is handed over again from a new one: from this commit until the commit log, a driver
that dies, or an answer that is lost, doubles all rows of the batch. Before the commit a crash leaves nothing behind.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "at-least-once"
TECHNIQUE = "append"
SERVICES = ("postgres",)

TYPES = {"bigint": "bigint", "double": "double precision", "timestamp": "timestamptz", "text": "text"}


def prepare(target: SimpleNamespace) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    with psycopg.connect(target.postgres) as connection:
        connection.execute(f"CREATE TABLE events ({columns})")


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    rows = df.toArrow().to_pylist()
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.executemany(insert(target), rows)


def insert(target: SimpleNamespace) -> str:
    names = list(target.columns)
    return f"INSERT INTO events ({', '.join(names)}) VALUES ({', '.join(f'%({name})s' for name in names)})"


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
