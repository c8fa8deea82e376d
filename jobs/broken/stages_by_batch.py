"""A batch is loaded into a staging table of its own, and moved from there with its id in the ledger. Flaw: duplicated.

The staging table has the batch's number in its name, so that no batch meets another one's rows; a replay empties it
first. So it holds wherever the driver dies.

Breaks when a driver that was taken for dead goes on while its successor is between load and move of the same batch: it
loads its rows to the other one's, and whoever moves first moves each row twice. The attempt would have to be in the
name, or load and move to be one transaction.
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
    load(target, f"staging_{batch_id}", df.toArrow().to_pylist())
    move(target, f"staging_{batch_id}", query, batch_id)


def load(target: SimpleNamespace, staging: str, rows: list[dict[str, Any]]) -> None:
    names = list(target.columns)
    values = ", ".join(f"%({name})s" for name in names)
    with psycopg.connect(target.postgres, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE IF NOT EXISTS {staging} (LIKE events)")
        cursor.execute(f"TRUNCATE {staging}")
        cursor.executemany(f"INSERT INTO {staging} ({', '.join(names)}) VALUES ({values})", rows)


def move(target: SimpleNamespace, staging: str, query: str, batch_id: int) -> None:
    names = ", ".join(target.columns)
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.execute(RECORD, (query, batch_id))
        if cursor.rowcount == 1:
            cursor.execute(f"INSERT INTO events ({names}) SELECT {names} FROM {staging}")
        cursor.execute(f"DROP TABLE IF EXISTS {staging}")


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
