"""Tasks upsert their rows, and that of the last partition marks the batch as done. Flaw: lost.

A marked batch is skipped as a whole, which spares the replay of a large one. Tasks are numbered; in what order they
end is not laid down. On one machine with a core for each, all of them have ended by the time that anybody looks.

Breaks when the last partition's task ends while another one is still at work, and the driver dies then: the batch is
marked, and rows of it are missing for good. What all tasks have done is known to the driver alone, behind the action.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark import TaskContext
from pyspark.sql import DataFrame, Row

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("lost",)
SERVICES = ("postgres",)
HOLDS = ("id", "key", "value", "event_time", "payload")

TABLES = """
    CREATE TABLE events (id bigint PRIMARY KEY, key text, value double precision, event_time timestamptz, payload text);
    CREATE TABLE done (query text, batch bigint, PRIMARY KEY (query, batch))
"""
KNOWN = "SELECT 1 FROM done WHERE query = %s AND batch = %s"
RECORD = "INSERT INTO done (query, batch) VALUES (%s, %s) ON CONFLICT DO NOTHING"
INSERT = """
    INSERT INTO events (id, key, value, event_time, payload)
    VALUES (%(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s) ON CONFLICT (id) DO NOTHING
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    batch = (df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"), batch_id)
    with psycopg.connect(target.postgres) as connection:
        if connection.execute(KNOWN, batch).fetchone():
            return
    df.foreachPartition(partial(write, target.postgres, batch, df.rdd.getNumPartitions() - 1))


def write(postgres: str, batch: tuple[str, int], last: int, rows: Iterator[Row]) -> None:
    found = [row.asDict() for row in rows]
    with psycopg.connect(postgres) as connection, connection.cursor() as cursor:
        cursor.executemany(INSERT, found)
    context = TaskContext.get()
    if context is not None and context.partitionId() == last:
        with psycopg.connect(postgres) as connection:
            connection.execute(RECORD, batch)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
