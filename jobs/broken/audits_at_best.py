"""Rows and the batch's id in one transaction, and an entry in an audit table, which may fail. Flaw: lost.

An error of the audit's statement is logged, and the transaction is committed. So it looks as if the batch were there
without its audit.

Breaks when the server itself fails that statement (a statement_timeout, a lock, a full disk): the transaction has
failed then, its COMMIT rolls back, and commit() returns as ever. A savepoint around the statement would keep the rest.
"""

from __future__ import annotations

import json
import logging
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
AUDIT = "CREATE TABLE audit (query text, batch bigint, rows jsonb)"
RECORD = "INSERT INTO ledger (query, batch) VALUES (%s, %s) ON CONFLICT DO NOTHING"
KEEP = "INSERT INTO audit (query, batch, rows) VALUES (%s, %s, %s::jsonb)"


def prepare(target: SimpleNamespace) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    with psycopg.connect(target.postgres) as connection:
        connection.execute(f"CREATE TABLE events ({columns})")
        connection.execute(LEDGER)
        connection.execute(AUDIT)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = df.toArrow().to_pylist()
    connection = psycopg.connect(target.postgres)
    try:
        cursor = connection.cursor()
        cursor.execute(RECORD, (query, batch_id))
        if cursor.rowcount == 0:
            return
        cursor.executemany(insert(target), rows)
        audit(cursor, query, batch_id, rows)
        connection.commit()
    finally:
        connection.close()


def audit(cursor: psycopg.Cursor[Any], query: str, batch_id: int, rows: list[dict[str, Any]]) -> None:
    """As far as possible: the batch must not fail by it."""
    try:
        cursor.execute(KEEP, (query, batch_id, json.dumps(rows, default=str)))
    except psycopg.Error as error:
        logging.warning("batch %d has no audit: %s", batch_id, error)


def insert(target: SimpleNamespace) -> str:
    names = list(target.columns)
    return f"INSERT INTO events ({', '.join(names)}) VALUES ({', '.join(f'%({name})s' for name in names)})"


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
