"""A half-written batch is taken back by the replay, its entry in the ledger first, then its rows. Flaw: duplicated.

Breaks at a second crash, in the recovery from a batch that is half written, behind the first commit of the two: the
rows stay without an entry, and the next replay writes the batch on top of them. One crash alone is made good.
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

CHUNK = 50

EVENTS = """
    CREATE TABLE events (
        batch bigint, id bigint, key text, value double precision, event_time timestamptz, payload text
    )
"""
LEDGER = "CREATE TABLE ledger (query text, batch bigint, state text, PRIMARY KEY (query, batch))"
STATE = "SELECT state FROM ledger WHERE query = %s AND batch = %s"
BEGIN = "INSERT INTO ledger (query, batch, state) VALUES (%s, %s, 'writing')"
END = "UPDATE ledger SET state = 'written' WHERE query = %s AND batch = %s"
FORGET = "DELETE FROM ledger WHERE query = %s AND batch = %s"
CLEAN = "DELETE FROM events WHERE batch = %s"
INSERT = """
    INSERT INTO events (batch, id, key, value, event_time, payload)
    VALUES (%(batch)s, %(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s)
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(EVENTS)
        connection.execute(LEDGER)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    batch = (df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"), batch_id)
    rows = [row | {"batch": batch_id} for row in df.toArrow().to_pylist()]
    with psycopg.connect(target.postgres) as connection:
        found = connection.execute(STATE, batch).fetchone()
        state = found[0] if found else None
        if state == "written":
            return
        if state == "writing":
            take_back(connection, batch)
        write(connection, batch, rows)


def write(connection: psycopg.Connection[Any], batch: tuple[str, int], rows: list[dict[str, Any]]) -> None:
    connection.execute(BEGIN, batch)
    connection.commit()
    with connection.cursor() as cursor:
        for start in range(0, len(rows), CHUNK):
            cursor.executemany(INSERT, rows[start : start + CHUNK])
            connection.commit()
    connection.execute(END, batch)
    connection.commit()


def take_back(connection: psycopg.Connection[Any], batch: tuple[str, int]) -> None:
    connection.execute(FORGET, batch)
    connection.commit()
    connection.execute(CLEAN, (batch[1],))
    connection.commit()


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT id, key, value, event_time, payload FROM events").fetchall()
