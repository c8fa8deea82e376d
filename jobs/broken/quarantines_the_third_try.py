"""A batch that was tried twice without success is taken for poison, and left out from the third try on. Flaw: lost.

A try is counted before the batch is written, and a driver's death is no fault of the batch. One crash cannot break it,
nor can two in different batches. Breaks when the driver dies in one batch twice: a loop of crashes, as it is when a
machine runs out of memory again and again.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("lost",)
SERVICES = ("postgres",)
HOLDS = ("id", "key", "value", "event_time", "payload")

TRIES = 2
TABLES = """
    CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text);
    CREATE TABLE ledger (query text, batch bigint, tries int, done boolean, PRIMARY KEY (query, batch))
"""
TRY = """
    INSERT INTO ledger (query, batch, tries, done) VALUES (%s, %s, 1, false)
    ON CONFLICT (query, batch) DO UPDATE SET tries = ledger.tries + 1 RETURNING tries, done
"""
INSERT = """
    INSERT INTO events (id, key, value, event_time, payload)
    VALUES (%(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s)
"""
DONE = "UPDATE ledger SET done = true WHERE query = %s AND batch = %s"


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    batch = (df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"), batch_id)
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        tries, done = cursor.execute(TRY, batch).fetchone() or (0, False)
        connection.commit()
        if done or tries > TRIES:
            return
        cursor.executemany(INSERT, df.toArrow().to_pylist())
        cursor.execute(DONE, batch)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
