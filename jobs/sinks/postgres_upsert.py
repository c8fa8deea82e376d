"""Rows keyed by their id: writing a batch again overwrites each row with itself. Exactly-once by idempotence.

It holds as long as a replay computes the same rows. One transaction a batch keeps readers from seeing half of it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
SERVICES = ("postgres",)

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
    rows = df.toArrow().to_pylist()
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.executemany(UPSERT, rows)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
