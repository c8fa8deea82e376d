"""The ledger, with rows in pages of a thousand; the page that is not full is the last one, and the batch's entry goes
with it. Flaw: lost.

Breaks in any batch whose last page is full, without any fault: nobody commits it, and the connection's end rolls all
of it back.
"""

from __future__ import annotations

from contextlib import closing
from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
SERVICES = ("postgres",)
HOLDS = ("id", "key", "value", "event_time", "payload")
FLAW = ("lost",)

PAGE = 1000

TABLES = """
    CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text);
    CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch))
"""
RECORDED = "SELECT 1 FROM ledger WHERE query = %s AND batch = %s"
RECORD = "INSERT INTO ledger (query, batch) VALUES (%s, %s)"
INSERT = """
    INSERT INTO events (id, key, value, event_time, payload)
    VALUES (%(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s)
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    batch = (df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"), batch_id)
    rows = df.toArrow().to_pylist()
    with closing(psycopg.connect(target.postgres)) as connection, connection.cursor() as cursor:
        if cursor.execute(RECORDED, batch).fetchone():
            return
        for start in range(0, len(rows), PAGE):
            page = rows[start : start + PAGE]
            cursor.executemany(INSERT, page)
            if len(page) < PAGE:
                cursor.execute(RECORD, batch)
                connection.commit()


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
