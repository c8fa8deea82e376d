"""Rows, and the number of the query's last batch, in one transaction: a batch with that very number is skipped. Flaw:
duplicated.

Spark never goes back by more than the batch that was under way, so it seems enough to look whether it is the same. The
row of the ledger is locked until the end, so that two writers of the same batch follow each other.

Breaks when a driver that was taken for dead goes on after its successor has written the next batch, too: another number
stands in the ledger then, and so the batch is taken for new. It would have to be skipped if it is not greater.
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

LEDGER = "CREATE TABLE ledger (query text PRIMARY KEY, batch bigint NOT NULL)"
ADVANCE = """
    INSERT INTO ledger (query, batch) VALUES (%s, %s)
    ON CONFLICT (query) DO UPDATE SET batch = excluded.batch WHERE ledger.batch <> excluded.batch
"""


def prepare(target: SimpleNamespace) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    with psycopg.connect(target.postgres) as connection:
        connection.execute(f"CREATE TABLE events ({columns})")
        connection.execute(LEDGER)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.execute(ADVANCE, (query, batch_id))
        if cursor.rowcount == 1:
            cursor.executemany(insert(target), df.toArrow().to_pylist())


def insert(target: SimpleNamespace) -> str:
    names = list(target.columns)
    return f"INSERT INTO events ({', '.join(names)}) VALUES ({', '.join(f'%({name})s' for name in names)})"


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
