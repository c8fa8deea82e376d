"""A batch is noted as begun before it is written, and the note goes in the rows' transaction. Flaw: duplicated.

A batch that has such a note from before was not finished: it is written without asking the ledger. One lock keeps
drivers apart, from the first question to the end of the transaction.

Breaks when the driver dies before the batch is committed, and its successor behind that: the first one's note is still
there, and the third driver takes it for what has become of the batch. Neither death does harm without the other. Each
attempt would have to remove the notes of all that were before it; better still, the ledger alone would say it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("duplicated",)
SERVICES = ("postgres",)
HOLDS = ("id", "key", "value", "event_time", "payload")

TABLES = """
    CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text);
    CREATE TABLE begun (attempt text PRIMARY KEY, query text, batch bigint);
    CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch))
"""
LOCK = "SELECT pg_advisory_lock(hashtext(%s))"
UNFINISHED = "SELECT 1 FROM begun WHERE query = %s AND batch = %s"
BEGIN = "INSERT INTO begun (attempt, query, batch) VALUES (%s, %s, %s)"
KNOWN = "SELECT 1 FROM ledger WHERE query = %s AND batch = %s"
INSERT = """
    INSERT INTO events (id, key, value, event_time, payload)
    VALUES (%(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s)
"""
RECORD = "INSERT INTO ledger (query, batch) VALUES (%s, %s) ON CONFLICT DO NOTHING"
END = "DELETE FROM begun WHERE attempt = %s"


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query, attempt = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"), uuid4().hex
    batch = (query, batch_id)
    rows = df.toArrow().to_pylist()
    with psycopg.connect(target.postgres, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(LOCK, [query])
        unfinished = cursor.execute(UNFINISHED, batch).fetchone()
        cursor.execute(BEGIN, (attempt, *batch))
        with connection.transaction():
            if unfinished or not cursor.execute(KNOWN, batch).fetchone():
                cursor.executemany(INSERT, rows)
                cursor.execute(RECORD, batch)
            cursor.execute(END, [attempt])


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
