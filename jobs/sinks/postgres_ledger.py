"""Rows and the batch's id in one transaction: a batch that is in the ledger is skipped. Exactly-once without row keys.

The ledger's key is (query id, batch id): a query with a new checkpoint counts its batches from 0 again, and must not
find those of its predecessor. A batch is skipped as a whole, never by task or partition, because a replay may deal its
Kafka partitions to other tasks.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
SERVICES = ("postgres",)

TABLES = """
    CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text);
    CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch))
"""
# A second writer of the same batch waits here until the first has committed or rolled back.
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
        if cursor.rowcount == 1:
            cursor.executemany(INSERT, rows)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
