"""A ledger with the query's last batch, locked (FOR UPDATE) from the look at it to the commit. Flaw: duplicated.

Two writers of a batch follow each other, and the second one sees that it is known. But in a query's first batch there
is no row yet that could be locked, and the note at the end is an upsert, which a second one does not disturb.

Breaks when a driver that was taken for dead in the first batch, behind its look at the ledger, goes on after its
successor has written it: the first batch is often the largest, since it has all that was there before.
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
LAST = "SELECT batch FROM ledger WHERE query = %s FOR UPDATE"
NOTE = """
    INSERT INTO ledger (query, batch) VALUES (%s, %s)
    ON CONFLICT (query) DO UPDATE SET batch = excluded.batch
"""


def prepare(target: SimpleNamespace) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    with psycopg.connect(target.postgres) as connection:
        connection.execute(f"CREATE TABLE events ({columns})")
        connection.execute(LEDGER)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = df.toArrow().to_pylist()
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        last = cursor.execute(LAST, [query]).fetchone()
        if last is not None and last[0] >= batch_id:
            return
        cursor.executemany(insert(target), rows)
        cursor.execute(NOTE, (query, batch_id))


def insert(target: SimpleNamespace) -> str:
    names = list(target.columns)
    return f"INSERT INTO events ({', '.join(names)}) VALUES ({', '.join(f'%({name})s' for name in names)})"


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
