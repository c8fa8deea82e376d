"""The ledger, with a write that is tried five times, ever later. Flaw: lost.

A loop of tries, as most clients have one: half a second, one, two and four are waited between them. Whoever writes it
by hand forgets what comes behind the last try: the function logs, and returns. Spark takes the batch for written.

Breaks when the database is away for more than eight seconds. One that dies and is back at once, or an answer that is
lost, is got over.
"""

from __future__ import annotations

import logging
import time
from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("lost",)
SERVICES = ("postgres",)

TYPES = {"bigint": "bigint", "double": "double precision", "timestamp": "timestamptz", "text": "text"}

LEDGER = "CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch))"
RECORD = "INSERT INTO ledger (query, batch) VALUES (%s, %s) ON CONFLICT DO NOTHING"

TRIES = 5
FIRST_WAIT = 0.5
"""Seconds; each next one is twice as long."""


def prepare(target: SimpleNamespace) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    with psycopg.connect(target.postgres) as connection:
        connection.execute(f"CREATE TABLE events ({columns})")
        connection.execute(LEDGER)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = df.toArrow().to_pylist()
    for number in range(TRIES):
        try:
            write(rows, query, batch_id, target)
            return
        except psycopg.OperationalError as error:
            logging.warning("batch %d, try %d: %s", batch_id, number + 1, error)
            time.sleep(FIRST_WAIT * 2**number if number < TRIES - 1 else 0)
    logging.error("batch %d: given up", batch_id)


def write(rows: list[dict[str, Any]], query: str, batch_id: int, target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.execute(RECORD, (query, batch_id))
        if cursor.rowcount == 1:
            cursor.executemany(insert(target), rows)


def insert(target: SimpleNamespace) -> str:
    names = list(target.columns)
    return f"INSERT INTO events ({', '.join(names)}) VALUES ({', '.join(f'%({name})s' for name in names)})"


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
