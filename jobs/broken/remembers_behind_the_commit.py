"""The ledger in one row with a fencing token: each driver takes a new one with its first batch, and asks then, once,
which batch was the last; from then on it remembers that, behind each commit. Flaw: duplicated.

A driver that was taken for dead has an old token, and a new process asks anew. Breaks when the answer to a COMMIT is
lost, and the application starts its query again in the same process: the batch is committed, and not remembered.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
SERVICES = ("postgres",)
HOLDS = ("id", "key", "value", "event_time", "payload")
FLAW = ("duplicated",)

TABLES = """
    CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text);
    CREATE TABLE ledger (query text PRIMARY KEY, token bigint, batch bigint);
    CREATE TABLE statistics (batch bigint PRIMARY KEY, rows bigint)
"""
TAKE = """
    INSERT INTO ledger VALUES (%s, 1, -1)
    ON CONFLICT (query) DO UPDATE SET token = ledger.token + 1 RETURNING token, batch
"""
RECORD = "UPDATE ledger SET batch = %s WHERE query = %s AND token = %s"
INSERT = """
    INSERT INTO events (id, key, value, event_time, payload)
    VALUES (%(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s)
"""
COUNT = "INSERT INTO statistics VALUES (%s, %s) ON CONFLICT (batch) DO UPDATE SET rows = excluded.rows"

token: int | None = None
last = -1


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    global last
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = df.toArrow().to_pylist()
    if token is None:
        take(query, target)
    if batch_id <= last:
        return
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.execute(RECORD, (batch_id, query, token))
        if cursor.rowcount == 0:
            raise RuntimeError(f"batch {batch_id}: another driver has taken over")
        cursor.executemany(INSERT, rows)
    last = batch_id
    with psycopg.connect(target.postgres) as connection:  # for a dashboard
        connection.execute(COUNT, (batch_id, len(rows)))


def take(query: str, target: SimpleNamespace) -> None:
    global token, last
    with psycopg.connect(target.postgres) as connection:
        found = connection.execute(TAKE, (query,)).fetchone()
    assert found is not None
    token, last = found


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
