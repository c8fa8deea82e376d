"""A batch is written in chunks; the replay of a half-written one removes its rows first. Flaws: lost, withdrawn.

The ledger says who has the batch and whether all of it is written. Each chunk is a transaction that locks the batch's
entry and looks whether it is still one's own: a driver that was taken for dead is refused. The removal does not look:
whoever comes there has just claimed the batch.

Breaks when two drivers are lost one after the other: the first one dies between two chunks; the second claims the batch
and stands still before the removal, until the third has written all of it, and the engine has recorded it. Then it
removes the rows that readers have seen, and is refused at its own first chunk. Where nothing is left over the removal
is not run, so that neither a driver that stands still in a first run shows it, nor a second crash.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("lost", "withdrawn")
SERVICES = ("postgres",)
HOLDS = ("id", "key", "value", "event_time", "payload")

CHUNK = 500

TABLES = """
    CREATE TABLE events (
        batch bigint, id bigint, key text, value double precision, event_time timestamptz, payload text
    );
    CREATE TABLE ledger (query text, batch bigint, owner text, written boolean, PRIMARY KEY (query, batch))
"""
CLAIM = """
    INSERT INTO ledger (query, batch, owner, written) VALUES (%s, %s, %s, false) ON CONFLICT (query, batch)
    DO UPDATE SET owner = excluded.owner WHERE NOT ledger.written RETURNING xmax = 0
"""
MINE = "SELECT 1 FROM ledger WHERE query = %s AND batch = %s AND owner = %s FOR UPDATE"
INSERT = """
    INSERT INTO events (batch, id, key, value, event_time, payload)
    VALUES (%(batch)s, %(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s)
"""
END = "UPDATE ledger SET written = true WHERE query = %s AND batch = %s AND owner = %s"


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = [row | {"batch": batch_id} for row in df.toArrow().to_pylist()]
    mine = (query, batch_id, uuid4().hex)
    with psycopg.connect(target.postgres, autocommit=True) as connection:
        claimed = connection.execute(CLAIM, mine).fetchone()
        if claimed is None:  # all of it is written
            return
        if claimed != (True,):
            take_back(connection, batch_id)
        for start in range(0, len(rows), CHUNK):
            with connection.transaction(), connection.cursor() as cursor:
                fence(connection, mine)
                cursor.executemany(INSERT, rows[start : start + CHUNK])
        with connection.transaction():
            fence(connection, mine)
            connection.execute(END, mine)


def fence(connection: psycopg.Connection[Any], mine: tuple[str, int, str]) -> None:
    if connection.execute(MINE, mine).fetchone() is None:
        raise RuntimeError("another driver has the batch")


def take_back(connection: psycopg.Connection[Any], batch: int) -> None:
    connection.execute("DELETE FROM events WHERE batch = %s", [batch])


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT id, key, value, event_time, payload FROM events").fetchall()
