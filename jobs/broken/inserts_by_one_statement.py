"""A batch is copied to a temporary table, and one statement, which commits by itself, inserts what the table lacks. It
has no unique constraint. Flaw: duplicated.

Breaks where two of these statements are carried out at once: NOT EXISTS sees what was committed when each of them
began. A driver dies while the server is at work on its own, which goes on, or it was taken for dead and comes back; the
other driver's finds no row of the batch. (A MERGE that has only WHEN NOT MATCHED is the same.)
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "idempotent"
SERVICES = ("postgres",)
FLAW = ("duplicated",)
HOLDS = ("id", "key", "value", "event_time", "payload")

TABLES = """
    CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text);
    CREATE INDEX ON events (id)
"""
MISSING = "INSERT INTO events SELECT * FROM batch WHERE NOT EXISTS (SELECT 1 FROM events WHERE events.id = batch.id)"


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    rows = df.select(*HOLDS).toArrow().to_pylist()
    with psycopg.connect(target.postgres, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE batch (LIKE events)")
        with cursor.copy("COPY batch (id, key, value, event_time, payload) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(list(row.values()))
        cursor.execute(MISSING)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
