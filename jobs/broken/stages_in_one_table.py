"""A batch is loaded into a staging table, and merged from there into the table that is read, by key. Flaw: lost.

A replay empties the staging table and loads it again, and a merge of rows that are there already changes nothing. So it
holds wherever the driver dies.

Breaks when a driver that was taken for dead goes on while its successor is between load and merge of a later batch: it
loads its own batch into the same table, and the successor merges that one. The batch that it takes for merged never
comes again. The staging table's name would have to have the batch's number in it, or load and merge to be one
transaction.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "idempotent"
FLAW = ("lost",)
SERVICES = ("postgres",)

TYPES = {"bigint": "bigint", "double": "double precision", "timestamp": "timestamptz", "text": "text"}


def prepare(target: SimpleNamespace) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    with psycopg.connect(target.postgres) as connection:
        connection.execute(f"CREATE TABLE staging ({columns})")
        connection.execute(f"CREATE TABLE events ({columns}, PRIMARY KEY ({', '.join(target.key)}))")


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    rows = df.toArrow().to_pylist()
    load(target, rows)
    merge(target)


def load(target: SimpleNamespace, rows: list[dict[str, Any]]) -> None:
    names = list(target.columns)
    values = ", ".join(f"%({name})s" for name in names)
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.execute("TRUNCATE staging")
        cursor.executemany(f"INSERT INTO staging ({', '.join(names)}) VALUES ({values})", rows)


def merge(target: SimpleNamespace) -> None:
    names = ", ".join(target.columns)
    with psycopg.connect(target.postgres) as connection:
        connection.execute(f"INSERT INTO events ({names}) SELECT {names} FROM staging ON CONFLICT DO NOTHING")


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
