"""A batch is staged under its attempt's id, and published by one statement with its entry in the ledger. Flaw: lost.

No two drivers meet each other's rows, and of two that publish the same batch the ledger lets one. What a dead attempt
has left of the batch is removed where the next one begins.

Breaks when a driver that was taken for dead, between staging and publishing, goes on while its successor has removed
what "a dead one" had left, and has not published yet: the first one publishes nothing, with the batch's entry, and the
successor finds the batch known. Going on earlier or later does no harm, nor does a driver's death anywhere. The
statement that publishes would have to count what it publishes, or the removal to leave alone what is not published.
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
FLAW = ("lost",)
SERVICES = ("postgres",)
HOLDS = ("id", "key", "value", "event_time", "payload")

ROW = "id bigint, key text, value double precision, event_time timestamptz, payload text"
TABLES = f"""
    CREATE TABLE events ({ROW});
    CREATE TABLE staging (query text, batch bigint, attempt text, {ROW});
    CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch))
"""
CLEAN = "DELETE FROM staging WHERE query = %s AND batch = %s"
STAGE = """
    INSERT INTO staging (query, batch, attempt, id, key, value, event_time, payload)
    VALUES (%(query)s, %(batch)s, %(attempt)s, %(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s)
"""
PUBLISH = """
    WITH new AS (INSERT INTO ledger (query, batch) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING batch)
    INSERT INTO events SELECT id, key, value, event_time, payload FROM staging, new WHERE attempt = %s
"""
TIDY = "DELETE FROM staging WHERE attempt = %s"


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query, attempt = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"), uuid4().hex
    own = {"query": query, "batch": batch_id, "attempt": attempt}
    rows = [row | own for row in df.toArrow().to_pylist()]
    with psycopg.connect(target.postgres, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(CLEAN, (query, batch_id))
        cursor.executemany(STAGE, rows)
        cursor.execute(PUBLISH, (query, batch_id, attempt))
        cursor.execute(TIDY, [attempt])


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
