"""Rows keyed by the job's key: writing a batch again overwrites each row with itself. Exactly-once by idempotence.

It holds as long as a replay computes the same rows. One transaction a batch keeps readers from seeing half of it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "idempotent"
SERVICES = ("postgres",)
KEY = "target.key"

TYPES = {"bigint": "bigint", "double": "double precision", "timestamp": "timestamptz", "text": "text"}


def prepare(target: SimpleNamespace) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]} NOT NULL" for name, kind in target.columns.items())
    with psycopg.connect(target.postgres) as connection:
        connection.execute(f"CREATE TABLE events ({columns}, PRIMARY KEY ({', '.join(target.key)}))")


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    rows = df.toArrow().to_pylist()
    statement = upsert(target)
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.executemany(statement, rows)


def upsert(target: SimpleNamespace) -> str:
    names = list(target.columns)
    values = ", ".join(f"%({name})s" for name in names)
    changes = ", ".join(f"{name} = excluded.{name}" for name in names)
    return (
        f"INSERT INTO events ({', '.join(names)}) VALUES ({values}) "
        f"ON CONFLICT ({', '.join(target.key)}) DO UPDATE SET {changes}"
    )


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
