"""Masked rows whose garbage is collected before anybody asks whether it is garbage. Flaws: lost, withdrawn.

Rows are committed with their batch's number, and seen once the batch's bit is set, in a second transaction. Each
attempt begins by deleting what an earlier one left of the batch, which is right for a batch whose bit never came. One
whose bit is set is skipped, and its rows are gone.

Breaks when the driver dies after the bit was set and before the commit log: any replay of a batch that was whole.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "masked until committed"
FLAW = ("lost", "withdrawn")
SERVICES = ("postgres",)
HOLDS = ("id", "key", "value", "event_time", "payload")

TABLES = """
    CREATE TABLE masked (id bigint, key text, value double precision, event_time timestamptz, payload text,
        query text, batch bigint);
    CREATE TABLE shown (query text, batch bigint, PRIMARY KEY (query, batch));
    CREATE VIEW events AS SELECT id, key, value, event_time, payload FROM masked JOIN shown USING (query, batch)
"""
SHOWN = "SELECT 1 FROM shown WHERE query = %s AND batch = %s"
SHOW = "INSERT INTO shown (query, batch) VALUES (%s, %s) ON CONFLICT DO NOTHING"
COLLECT = "DELETE FROM masked WHERE query = %s AND batch = %s"
INSERT = """
    INSERT INTO masked (id, key, value, event_time, payload, query, batch)
    VALUES (%(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s, %(query)s, %(batch)s)
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = [row | {"query": query, "batch": batch_id} for row in df.toArrow().to_pylist()]
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.execute(COLLECT, (query, batch_id))
        if cursor.execute(SHOWN, (query, batch_id)).fetchone() is not None:
            return
        cursor.executemany(INSERT, rows)
        connection.commit()
        cursor.execute(SHOW, (query, batch_id))


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
