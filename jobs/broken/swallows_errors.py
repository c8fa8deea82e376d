"""An upsert that logs a failure instead of raising it. Flaw: lost.

Breaks when writing fails: the query takes the batch for written and goes on to the next. No crash can break it.
"""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "idempotent"
FLAW = ("lost",)
SERVICES = ("postgres",)
HOLDS = ("id", "key", "value", "event_time", "payload")

TABLE = """
    CREATE TABLE events (
        id bigint PRIMARY KEY, key text NOT NULL, value double precision NOT NULL,
        event_time timestamptz NOT NULL, payload text NOT NULL
    )
"""
UPSERT = """
    INSERT INTO events (id, key, value, event_time, payload)
    VALUES (%(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s)
    ON CONFLICT (id) DO UPDATE
    SET key = excluded.key, value = excluded.value, event_time = excluded.event_time, payload = excluded.payload
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLE)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    try:
        rows = df.toArrow().to_pylist()
        with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
            cursor.executemany(UPSERT, rows)
    except Exception:
        logging.exception("batch %d could not be written", batch_id)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
