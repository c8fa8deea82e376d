"""A known batch is deleted and written again, in two transactions that the ledger tells apart. Flaw: lost.

One crash cannot break it. Breaks when the driver dies a second time, in the recovery, between the two: the next replay
takes the batch for one that somebody else is writing again.
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

TABLES = """
    CREATE TABLE events (
        batch bigint, id bigint, key text, value double precision, event_time timestamptz, payload text
    );
    CREATE TABLE ledger (query text, batch bigint, state text, PRIMARY KEY (query, batch))
"""
STATE = "SELECT state FROM ledger WHERE query = %s AND batch = %s"
RECORD = """
    INSERT INTO ledger (query, batch, state) VALUES (%s, %s, %s)
    ON CONFLICT (query, batch) DO UPDATE SET state = excluded.state
"""
INSERT = """
    INSERT INTO events (batch, id, key, value, event_time, payload)
    VALUES (%(batch)s, %(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s)
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = [row | {"batch": batch_id} for row in df.toArrow().to_pylist()]
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        known = cursor.execute(STATE, (query, batch_id)).fetchone()
        if known == ("being written again",):
            return
        if known is not None:
            cursor.execute(RECORD, (query, batch_id, "being written again"))
            cursor.execute("DELETE FROM events WHERE batch = %s", (batch_id,))
            connection.commit()
        cursor.executemany(INSERT, rows)
        cursor.execute(RECORD, (query, batch_id, "written"))


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT id, key, value, event_time, payload FROM events").fetchall()
