"""A ledger under an advisory lock, which is held by a connection of its own while others look and write. Nothing else
keeps a batch from being written twice. Flaw: duplicated.

Breaks where that connection ends (an idle one is given up, a server fails over), and its driver stands still: another
driver gets the lock, writes the batch and commits it. The first one, which had looked before, then writes by a new
connection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
SERVICES = ("postgres",)
FLAW = ("duplicated",)
HOLDS = ("id", "key", "value", "event_time", "payload")

Batch = tuple[str, int]

TABLES = """
    CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text);
    CREATE TABLE ledger (query text, batch bigint)
"""
INSERT = """
    INSERT INTO events (id, key, value, event_time, payload)
    VALUES (%(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s)
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


@contextmanager
def only_writer(target: SimpleNamespace, query: str) -> Iterator[None]:
    with psycopg.connect(target.postgres, autocommit=True) as guard:
        guard.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [query])
        yield


def is_known(target: SimpleNamespace, batch: Batch) -> bool:
    with psycopg.connect(target.postgres) as connection:
        return connection.execute("SELECT 1 FROM ledger WHERE query = %s AND batch = %s", batch).fetchone() is not None


def write(target: SimpleNamespace, batch: Batch, rows: Sequence[Mapping[str, Any]]) -> None:
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.executemany(INSERT, rows)
        cursor.execute("INSERT INTO ledger VALUES (%s, %s)", batch)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    batch = (df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"), batch_id)
    rows = df.toArrow().to_pylist()
    with only_writer(target, batch[0]):
        if not is_known(target, batch):
            write(target, batch, rows)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
