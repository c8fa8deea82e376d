"""Rows in chunks, each in one transaction with a note of how far the batch is; a replay goes on there. Flaw:
duplicated.

Rows are sorted, and a lock of the session lets one writer in at a time. The note says how many rows of what was left
have been written: in a first run that is all of the batch, in one that goes on behind a crash it is the rest.

Breaks when a batch that went on behind a crash is handed over once more: it dies again, in the rest or behind it.
"""

from __future__ import annotations

from operator import itemgetter
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

CHUNK = 16

TABLES = """
    CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text);
    CREATE TABLE progress (query text, batch bigint, done bigint NOT NULL, PRIMARY KEY (query, batch))
"""
LOCK = "SELECT pg_advisory_lock(hashtextextended(%s, 0))"
DONE = "SELECT done FROM progress WHERE query = %s AND batch = %s"
NOTE = """
    INSERT INTO progress (query, batch, done) VALUES (%s, %s, %s)
    ON CONFLICT (query, batch) DO UPDATE SET done = excluded.done
"""
INSERT = """
    INSERT INTO events (id, key, value, event_time, payload)
    VALUES (%(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s)
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = sorted(df.toArrow().to_pylist(), key=itemgetter("id"))
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.execute(LOCK, [query])
        known = cursor.execute(DONE, (query, batch_id)).fetchone()
        left = rows[known[0] if known else 0 :]
        for start in range(0, len(left), CHUNK):
            chunk = left[start : start + CHUNK]
            cursor.executemany(INSERT, chunk)
            cursor.execute(NOTE, (query, batch_id, start + len(chunk)))
            connection.commit()


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
