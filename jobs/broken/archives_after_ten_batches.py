"""A right ledger; behind each batch, what is older than ten batches is moved to an archive, in two transactions. Flaw:
duplicated.

In the first ten batches all of this runs, and moves nothing.

Breaks when the driver dies, or its connection, between the copy and the removal: readers see the batch in both tables,
and the next batch copies it once more.
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

KEPT = 10

TABLES = """
    CREATE TABLE events (
        batch bigint, id bigint, key text, value double precision, event_time timestamptz, payload text
    );
    CREATE TABLE archive (LIKE events);
    CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch))
"""
RECORD = "INSERT INTO ledger (query, batch) VALUES (%s, %s) ON CONFLICT DO NOTHING"
INSERT = """
    INSERT INTO events (batch, id, key, value, event_time, payload)
    VALUES (%(batch)s, %(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s)
"""
COPY = "INSERT INTO archive SELECT * FROM events WHERE batch <= %s"
REMOVE = "DELETE FROM events WHERE batch <= %s"
ALL = "SELECT id, key, value, event_time, payload FROM"


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = [row | {"batch": batch_id} for row in df.toArrow().to_pylist()]
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.execute(RECORD, (query, batch_id))
        if cursor.rowcount != 1:
            return
        cursor.executemany(INSERT, rows)
        connection.commit()
        cursor.execute(COPY, [batch_id - KEPT])
        connection.commit()
        cursor.execute(REMOVE, [batch_id - KEPT])


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute(f"{ALL} archive UNION ALL {ALL} events").fetchall()
