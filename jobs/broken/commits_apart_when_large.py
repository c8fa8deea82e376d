"""A right ledger, in one transaction with the rows; those of a large batch are committed apart. Flaw: duplicated.

Each attempt is logged, then come the rows, then the ledger's entry. Of a batch of more than 5,000 rows each of these
is committed by itself, so that operators see that it has begun, and no long transaction holds back the vacuum.

Breaks when the driver dies between the rows' commit and the ledger's, of a batch that large.
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

LARGE = 5_000

TYPES = {"bigint": "bigint", "double": "double precision", "timestamp": "timestamptz", "text": "text"}
ATTEMPTS = "CREATE TABLE attempts (query text, batch bigint, began timestamptz DEFAULT now())"
LEDGER = "CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch))"
KNOWN = "SELECT 1 FROM ledger WHERE query = %s AND batch = %s"
BEGUN = "INSERT INTO attempts (query, batch) VALUES (%s, %s)"
RECORD = "INSERT INTO ledger (query, batch) VALUES (%s, %s)"


def prepare(target: SimpleNamespace) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    with psycopg.connect(target.postgres) as connection:
        connection.execute(f"CREATE TABLE events ({columns})")
        connection.execute(ATTEMPTS)
        connection.execute(LEDGER)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    batch = (df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"), batch_id)
    rows = df.toArrow().to_pylist()
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        if cursor.execute(KNOWN, batch).fetchone() is not None:
            return
        apart = len(rows) > LARGE
        cursor.execute(BEGUN, batch)
        if apart:
            connection.commit()
        cursor.executemany(insert(target), rows)
        if apart:
            connection.commit()
        cursor.execute(RECORD, batch)


def insert(target: SimpleNamespace) -> str:
    names = list(target.columns)
    return f"INSERT INTO events ({', '.join(names)}) VALUES ({', '.join(f'%({name})s' for name in names)})"


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
