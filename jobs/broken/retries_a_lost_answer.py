"""A right ledger, around which a retry sends the rows again when the connection is lost. Flaw: duplicated.

Breaks when the connection is lost after the commit was done and before its answer came: the second attempt writes the
rows without asking the ledger, which the first one has passed.
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

TABLES = """
    CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text);
    CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch))
"""
RECORDED = "SELECT 1 FROM ledger WHERE query = %s AND batch = %s"
RECORD = "INSERT INTO ledger (query, batch) VALUES (%s, %s) ON CONFLICT DO NOTHING"
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
    with psycopg.connect(target.postgres) as connection:
        if connection.execute(RECORDED, batch).fetchone() is not None:
            return
    try:
        write(target, batch, rows)
    except psycopg.OperationalError:
        write(target, batch, rows)


def write(target: SimpleNamespace, batch: tuple[str, int], rows: list[dict[str, Any]]) -> None:
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.execute(RECORD, batch)
        cursor.executemany(INSERT, rows)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
