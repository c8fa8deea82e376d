"""A staging table, and a start of the job that publishes what a dead driver left there. Flaw: duplicated.

Each batch is staged, and then moved in one transaction. What a driver leaves staged, the next one moves before its
query starts: it publishes the rows, and empties the staging table in a transaction of its own. Breaks when the driver
dies with a staged batch, and the next one between these two: the one after it publishes the batch again.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("duplicated",)
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
RECORD = "INSERT INTO ledger SELECT DISTINCT batch FROM staging ON CONFLICT DO NOTHING"
PUBLISH = "INSERT INTO events SELECT id, key, value, event_time, payload FROM staging"


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(RECORD)
        connection.execute(PUBLISH)
        connection.commit()
        connection.execute("DELETE FROM staging")
    return stream.foreachBatch(partial(write, target=target))


def write(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    rows = [{**row, "batch": batch_id} for row in df.toArrow().to_pylist()]
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        if cursor.execute("SELECT 1 FROM ledger WHERE batch = %s", [batch_id]).fetchone() is not None:
            return
        cursor.executemany(STAGE, rows)
        connection.commit()
        cursor.execute(RECORD)
        cursor.execute(PUBLISH)
        cursor.execute("DELETE FROM staging")


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
