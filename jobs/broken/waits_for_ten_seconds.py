"""A batch is written by four threads, which are waited for: for ten seconds. Flaw: lost.

concurrent.futures.wait() with a timeout raises nothing when that is over: it gives back what is done and what is not.
Errors of those that are done are raised here; those that are not done are forgotten. So it is with flush(10) of
confluent-kafka, which gives back how many records are still queued, with join(10) of a thread, asyncio.wait(..., 10).

Breaks when a piece takes longer than ten seconds, and the driver dies behind the batch's commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
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

WRITERS = 4
SECONDS = 10.0

TABLE = """
    CREATE TABLE events (id bigint PRIMARY KEY, key text, value double precision, event_time timestamptz, payload text)
"""
INSERT = """
    INSERT INTO events (id, key, value, event_time, payload)
    VALUES (%(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s) ON CONFLICT DO NOTHING
"""

writers = ThreadPoolExecutor(WRITERS)


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLE)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    rows = df.toArrow().to_pylist()
    pieces = [piece for number in range(WRITERS) if (piece := rows[number::WRITERS])]
    done, _ = wait([writers.submit(insert, target, piece) for piece in pieces], timeout=SECONDS)
    for each in done:
        each.result()


def insert(target: SimpleNamespace, rows: Sequence[dict[str, Any]]) -> None:
    with psycopg.connect(target.postgres, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.executemany(INSERT, rows)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
