"""Writes a batch in chunks, and starts it over, on top of them, when the connection is lost. Flaw: duplicated.

Breaks when the connection is lost behind the first chunk's commit: the caller tries again from the first chunk. A
crash of the driver does no harm, since a new hand-over takes back what an unfinished one has left.
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
HOLDS = ("id", "key", "value", "event_time", "payload")

CHUNK = 50
TRIES = 3

EVENTS = """
    CREATE TABLE events (
        batch bigint, id bigint, key text, value double precision, event_time timestamptz, payload text
    )
"""
LEDGER = "CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch))"
RECORDED = "SELECT 1 FROM ledger WHERE query = %s AND batch = %s"
RECORD = "INSERT INTO ledger (query, batch) VALUES (%s, %s)"
TAKE_BACK = "DELETE FROM events WHERE batch = %s"
INSERT = """
    INSERT INTO events (batch, id, key, value, event_time, payload)
    VALUES (%(batch)s, %(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s)
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(EVENTS)
        connection.execute(LEDGER)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = [row | {"batch": batch_id} for row in df.toArrow().to_pylist()]
    with psycopg.connect(target.postgres) as connection:
        if connection.execute(RECORDED, (query, batch_id)).fetchone() is None:
            connection.execute(TAKE_BACK, (batch_id,))
    for attempt in range(1, TRIES + 1):
        try:
            append(target, query, batch_id, rows)
            break
        except psycopg.OperationalError:
            if attempt == TRIES:
                raise


def append(target: SimpleNamespace, query: str, batch_id: int, rows: list[dict[str, Any]]) -> None:
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        if cursor.execute(RECORDED, (query, batch_id)).fetchone() is not None:
            return
        for start in range(0, len(rows), CHUNK):
            cursor.executemany(INSERT, rows[start : start + CHUNK])
            connection.commit()
        cursor.execute(RECORD, (query, batch_id))


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT id, key, value, event_time, payload FROM events").fetchall()
