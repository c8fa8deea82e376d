"""A right ledger, whose rows are moved to an archive every third batch, in two transactions. Flaw: duplicated.

Breaks when the driver dies between the copy and the removal, which only every third batch runs: readers see the rows in
both tables, and the replay does not move them again.
"""

from __future__ import annotations

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

EVERY = 3

TABLES = """
    CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text);
    CREATE TABLE archive (LIKE events);
    CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch))
"""
RECORD = "INSERT INTO ledger (query, batch) VALUES (%s, %s) ON CONFLICT DO NOTHING"
INSERT = """
    INSERT INTO events (id, key, value, event_time, payload)
    VALUES (%(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s)
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = df.toArrow().to_pylist()
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.execute(RECORD, (query, batch_id))
        if cursor.rowcount != 1:
            return
        if batch_id % EVERY == EVERY - 1:
            cursor.execute("INSERT INTO archive SELECT * FROM events")
            connection.commit()
            cursor.execute("TRUNCATE events")
        cursor.executemany(INSERT, rows)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM archive UNION ALL SELECT * FROM events").fetchall()
