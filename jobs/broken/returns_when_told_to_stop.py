"""A right ledger that leaves a batch half way when SIGTERM comes, so that the job ends quickly. Flaw: lost.

Breaks when the driver is told to end in an orderly way while a batch is under way (a deployment, a node that is
drained): between two chunks the batch is rolled back and the function returns, to be written after the restart. But
for Spark, what returns has written its batch: it goes into the commit log and never comes again, and so do the batches
behind it until the query has ended. No crash breaks it, and no error.
"""

from __future__ import annotations

import logging
import signal
import threading
from functools import partial
from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("lost",)
SERVICES = ("postgres",)

CHUNK = 100
STOPPING = threading.Event()

TYPES = {"bigint": "bigint", "double": "double precision", "timestamp": "timestamptz", "text": "text"}
LEDGER = "CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch))"
RECORD = "INSERT INTO ledger (query, batch) VALUES (%s, %s) ON CONFLICT DO NOTHING"


def prepare(target: SimpleNamespace) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    with psycopg.connect(target.postgres) as connection:
        connection.execute(f"CREATE TABLE events ({columns})")
        connection.execute(LEDGER)


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    signal.signal(signal.SIGTERM, stop)
    return stream.foreachBatch(partial(write, target=target))


def stop(number: int, frame: object) -> None:
    STOPPING.set()


def write(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = df.toArrow().to_pylist()
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.execute(RECORD, (query, batch_id))
        if cursor.rowcount == 0:
            return
        for start in range(0, len(rows), CHUNK):
            if STOPPING.is_set():
                connection.rollback()
                logging.warning("stopping: batch %d is left to the next start", batch_id)
                return
            cursor.executemany(insert(target), rows[start : start + CHUNK])


def insert(target: SimpleNamespace) -> str:
    names = list(target.columns)
    return f"INSERT INTO events ({', '.join(names)}) VALUES ({', '.join(f'%({name})s' for name in names)})"


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
