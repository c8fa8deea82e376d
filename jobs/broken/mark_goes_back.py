"""Rows with their batch, each once by its id, and a mark up to which readers look. Flaw: lost.

A batch that the mark has reached is skipped; one that was written in part is written again, row by row where it is
missing. Breaks when a driver that was taken for dead behind its look at the mark goes on when its successor has done
the next batch, too: it sets the mark back, and readers lose that batch. The batch behind it sets the mark anew, if one
comes.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "masked until committed"
SERVICES = ("postgres",)
HOLDS = ("id", "key", "value", "event_time", "payload")
FLAW = ("lost",)

TABLES = """
    CREATE TABLE events (id bigint PRIMARY KEY, key text, value double precision, event_time timestamptz, payload text,
        batch bigint);
    CREATE TABLE mark (batch bigint);
    INSERT INTO mark VALUES (-1);
"""
INSERT = """
    INSERT INTO events (id, key, value, event_time, payload, batch)
    VALUES (%(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s, %(batch)s) ON CONFLICT (id) DO NOTHING
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    rows = [row | {"batch": batch_id} for row in df.toArrow().to_pylist()]
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        (reached,) = cursor.execute("SELECT batch FROM mark").fetchone() or (-1,)
        if batch_id <= reached:
            return
        cursor.executemany(INSERT, rows)
        cursor.execute("UPDATE mark SET batch = %s", (batch_id,))


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT e.* FROM events e, mark m WHERE e.batch <= m.batch").fetchall()
