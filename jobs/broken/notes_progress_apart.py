"""A task loads its rows in chunks and notes how far it is, in a second commit, so as to go on there. Flaw: duplicated.

Breaks when the process dies, or its connection, between the commit of a chunk and that of the note: the task's next
attempt, and the replay, load the chunk again. The rows are sorted, so that "so many are done" always means the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame, Row

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("duplicated",)
SERVICES = ("postgres",)
HOLDS = ("id", "key", "value", "event_time", "payload")

CHUNK = 50

EVENTS = "CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text)"
PROGRESS = "CREATE TABLE progress (query text, batch bigint, done bigint NOT NULL, PRIMARY KEY (query, batch))"
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
        connection.execute(EVENTS)
        connection.execute(PROGRESS)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    df.coalesce(1).foreachPartition(partial(load, target.postgres, query, batch_id))


def load(postgres: str, query: str, batch_id: int, found: Iterator[Row]) -> None:
    rows = sorted((comparable(row) for row in found), key=itemgetter("id"))
    with psycopg.connect(postgres) as connection, connection.cursor() as cursor:
        known = cursor.execute(DONE, (query, batch_id)).fetchone()
        for start in range(known[0] if known else 0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            cursor.executemany(INSERT, chunk)
            connection.commit()
            cursor.execute(NOTE, (query, batch_id, start + len(chunk)))
            connection.commit()


def comparable(row: Row) -> dict[str, Any]:
    """Rows of an RDD have naive times in the worker's own zone."""
    return row.asDict() | {"event_time": row.event_time.astimezone()}


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
