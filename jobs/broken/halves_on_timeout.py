"""Rows and the batch's id in one transaction; a batch that takes too long is halved. Flaw: duplicated.

A batch is one transaction, and its entry in the ledger goes with its last part, which is all of it. Where a statement
times out (statement_timeout), nothing was done, and the rows are tried again in parts of half the size.

Breaks when a driver dies between two parts of a batch that was halved: the first part is committed, and the ledger does
not know the batch. No error alone shows that, and no crash: without an error there is only one part.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.errors import QueryCanceled
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("duplicated",)
SERVICES = ("postgres",)

TYPES = {"bigint": "bigint", "double": "double precision", "timestamp": "timestamptz", "text": "text"}
LEDGER = "CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch))"
KNOWN = "SELECT 1 FROM ledger WHERE query = %s AND batch = %s"
RECORD = "INSERT INTO ledger (query, batch) VALUES (%s, %s)"
TIMEOUT = "-c statement_timeout=120s"


def prepare(target: SimpleNamespace) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    with psycopg.connect(target.postgres) as connection:
        connection.execute(f"CREATE TABLE events ({columns})")
        connection.execute(LEDGER)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = df.toArrow().to_pylist()
    size = len(rows)
    while True:
        part, rest = rows[:size], rows[size:]
        try:
            load(part, not rest, (query, batch_id), target)
        except QueryCanceled:
            if size <= 1:
                raise
            size = (size + 1) // 2
        else:
            rows = rest
            if not rows:
                return


def load(part: list[dict[str, Any]], last: bool, batch: tuple[str, int], target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres, options=TIMEOUT) as connection, connection.cursor() as cursor:
        if cursor.execute(KNOWN, batch).fetchone() is not None:
            return
        cursor.executemany(insert(target), part)
        if last:
            cursor.execute(RECORD, batch)


def insert(target: SimpleNamespace) -> str:
    names = list(target.columns)
    return f"INSERT INTO events ({', '.join(names)}) VALUES ({', '.join(f'%({name})s' for name in names)})"


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
