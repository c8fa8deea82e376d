"""An upsert that remembers in memory which batches it has begun, lest one is written twice. Flaw: lost.

Spark hands a batch over once in each run of a query, so that a driver never meets one that it knows, and a new driver
remembers nothing.

Breaks where the application starts a query that has failed again by itself, as services do that must not end: the same
process meets the batch again, takes it for done, and leaves it out. It was noted before it was written, and the write
had failed.
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

begun: set[int] = set()


def prepare(target: SimpleNamespace) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    with psycopg.connect(target.postgres) as connection:
        connection.execute(f"CREATE TABLE events ({columns}, PRIMARY KEY ({', '.join(target.key)}))")


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    if batch_id in begun:
        return
    begun.add(batch_id)
    rows = df.toArrow().to_pylist()
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.executemany(upsert(target), rows)


def upsert(target: SimpleNamespace) -> str:
    names = list(target.columns)
    values = ", ".join(f"%({name})s" for name in names)
    others = ", ".join(f"{name} = excluded.{name}" for name in names)
    into = f"INSERT INTO events ({', '.join(names)}) VALUES ({values})"
    return f"{into} ON CONFLICT ({', '.join(target.key)}) DO UPDATE SET {others}"


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
