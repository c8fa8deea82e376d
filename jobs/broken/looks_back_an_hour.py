"""Rows are inserted where the last hour of the table does not have them yet, under a lock of it. Flaw: duplicated.

The table is large, in order of event time, and has no unique constraint. A batch is staged, and what is not there yet
is inserted. The look is bounded, so that the planner need not go through years of rows for each batch: from an hour
before the batch's newest row on. One transaction a batch; who waits for the lock sees what the one before has
committed, so a driver that was taken for dead finds the batch, whenever it goes on.

Breaks when a batch comes again that has a row more than an hour older than its newest one (a phone that was off): that
is not found, and is inserted again. A bound by each row's own time prunes as well, and is right.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "idempotent"
FLAW = ("duplicated",)
SERVICES = ("postgres",)
HOLDS = ("id", "key", "value", "event_time", "payload")

TABLE = """
    CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text);
    CREATE INDEX ON events USING brin (event_time)
"""
LOCK = "LOCK TABLE events IN SHARE ROW EXCLUSIVE MODE"
STAGE = "CREATE TEMP TABLE batch (LIKE events) ON COMMIT DROP"
COPY = "COPY batch (id, key, value, event_time, payload) FROM STDIN"
MISSING = """
    INSERT INTO events
    SELECT * FROM batch
    WHERE NOT EXISTS (
        SELECT FROM events
        WHERE events.id = batch.id
          AND events.event_time >= (SELECT max(event_time) - interval '1 hour' FROM batch)
    )
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLE)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    rows = df.select(*HOLDS).toArrow().to_pylist()
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.execute(LOCK)
        cursor.execute(STAGE)
        with cursor.copy(COPY) as copy:
            for row in rows:
                copy.write_row(list(row.values()))
        cursor.execute(MISSING)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
