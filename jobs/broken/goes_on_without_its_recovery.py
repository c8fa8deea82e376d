"""A start of the job that publishes what a dead driver left staged, or goes on without having done so. Flaw: lost.

A batch is staged together with its entry in the ledger, and then moved. What a driver leaves staged, the next one moves
before its query starts. Breaks when that fails, which the log says and nobody else: the batch has its entry, so that
its replay is skipped, and its rows stay in the staging table. Needs a driver's death with a staged batch, and an error
in the start after it.
"""

from __future__ import annotations

import logging
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
HOLDS = ("id", "key", "value", "event_time", "payload")

ROW = "id bigint, key text, value double precision, event_time timestamptz, payload text"
TABLES = f"""
    CREATE TABLE events ({ROW});
    CREATE TABLE staging ({ROW}, batch bigint);
    CREATE TABLE ledger (batch bigint PRIMARY KEY)
"""
STAGE = """
    INSERT INTO staging (id, key, value, event_time, payload, batch)
    VALUES (%(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s, %(batch)s)
"""
PUBLISH = """
    WITH staged AS (
        DELETE FROM staging WHERE batch = coalesce(%s, batch) RETURNING id, key, value, event_time, payload
    )
    INSERT INTO events SELECT * FROM staged
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    try:
        publish(target)
    except psycopg.Error as error:
        logging.getLogger(__name__).warning("what is staged was not published: %s", error)
    return stream.foreachBatch(partial(write, target=target))


def publish(target: SimpleNamespace, batch: int | None = None) -> None:
    """A batch, or all that is staged."""
    with psycopg.connect(target.postgres) as connection:
        connection.execute(PUBLISH, [batch])


def write(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    rows = [{**row, "batch": batch_id} for row in df.toArrow().to_pylist()]
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO ledger (batch) VALUES (%s) ON CONFLICT DO NOTHING", [batch_id])
        if cursor.rowcount == 0:
            return
        cursor.executemany(STAGE, rows)
    publish(target, batch_id)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
