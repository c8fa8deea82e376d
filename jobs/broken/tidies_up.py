"""Appends a batch, and removes what it has written twice in a second transaction.

At the end each row is there once. Between its two commits a replay shows every row of its batch twice: the copies are
withdrawn later, but not from the reader that came by meanwhile.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "append"
SERVICES = ("postgres",)
HOLDS = ("id", "key", "value", "event_time", "payload")

FLAW = ("withdrawn",)

TABLE = "CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text)"
INSERT = """
    INSERT INTO events (id, key, value, event_time, payload)
    VALUES (%(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s)
"""
TIDY_UP = "DELETE FROM events one USING events other WHERE one.id = other.id AND one.ctid > other.ctid"


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLE)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    rows = df.toArrow().to_pylist()
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.executemany(INSERT, rows)
        connection.commit()
        cursor.execute(TIDY_UP)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
