"""Rows are written masked, by many tasks in transactions of their own, and shown by one statement: exactly-once.

Each task writes its rows under a new name, a *part*, and hands the name to the driver. A reader's view has the rows of
those parts only that the batch's entry names; naming them all is one statement, so a batch is seen whole or not at all.

It holds because only what happened for good is shown. Rows of a task that failed, or of a driver that died, lie in
parts that no entry names: nobody sees them, and the next attempt at the batch deletes them before it writes. A batch
whose parts are named is skipped. An attempt takes the batch over by writing its own name into the entry; an older
driver that wakes up then finds another name there and cannot show its parts, which may be deleted by now. An entry's
key has the query id in it: a query with a new checkpoint counts its batches from 0 again.

What it does not do: rows of a task that outlives its attempt (on a cluster, after its driver died) may come after they
were to be deleted. They stay masked, and take up space. Readers of the table behind the view see everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame, Row
from pyspark.sql.functions import struct, to_json

GUARANTEE = "exactly-once"
TECHNIQUE = "masked until committed"
SERVICES = ("postgres",)
ATOMIC = True

TYPES = {"bigint": "bigint", "double": "double precision", "timestamp": "timestamptz", "text": "text"}

BATCHES = """
    CREATE TABLE batches (query text, batch bigint, attempt text NOT NULL, parts text[], PRIMARY KEY (query, batch))
"""
# An attempt that shows the batch just now is waited for here: then it has parts, and nothing is taken over.
TAKE_OVER = """
    INSERT INTO batches (query, batch, attempt) VALUES (%s, %s, %s)
    ON CONFLICT (query, batch) DO UPDATE SET attempt = excluded.attempt WHERE batches.parts IS NULL
"""
INSERT = "INSERT INTO masked SELECT row.*, %s, %s, %s FROM json_populate_record(NULL::events, %s::json) AS row"
COLLECT_GARBAGE = "DELETE FROM masked WHERE _query = %s AND _batch = %s"
SHOW = "UPDATE batches SET parts = %s WHERE query = %s AND batch = %s AND attempt = %s AND parts IS NULL"

Batch = tuple[str, int]


def prepare(target: SimpleNamespace) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    names = ", ".join(f"masked.{name}" for name in target.columns)
    with psycopg.connect(target.postgres) as connection:
        connection.execute(BATCHES)
        connection.execute(f"CREATE TABLE masked ({columns}, _query text, _batch bigint, _part text)")
        connection.execute(
            f"CREATE VIEW events AS SELECT {names} FROM masked JOIN batches"
            " ON query = _query AND batch = _batch AND _part = ANY (parts)"
        )


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    """Rows as JSON, times with all their digits and their zone: Python would show them in the worker's time zone."""
    return df.select(to_json(struct("*"), {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}).alias("row"))


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    batch, attempt = (query, batch_id), uuid4().hex
    if not take_over(target, batch, attempt):
        return
    parts = df.rdd.mapPartitions(partial(write_part, target.postgres, batch)).collect()
    show(target, batch, attempt, parts)


def take_over(target: SimpleNamespace, batch: Batch, attempt: str) -> bool:
    """Whether the batch is still to be written; then it is this attempt's, and what others left of it is deleted."""
    with psycopg.connect(target.postgres) as connection:
        taken = connection.execute(TAKE_OVER, (*batch, attempt)).rowcount == 1
        if taken:
            connection.execute(COLLECT_GARBAGE, batch)
    return taken


def write_part(postgres: str, batch: Batch, rows: Iterator[Row]) -> Iterator[str]:
    """Runs in a task: writes its rows under a new name, and gives that once they are committed."""
    part = uuid4().hex
    with psycopg.connect(postgres) as connection, connection.cursor() as cursor:
        cursor.executemany(INSERT, [(*batch, part, row.row) for row in rows])
    yield part


def show(target: SimpleNamespace, batch: Batch, attempt: str, parts: list[str]) -> None:
    with psycopg.connect(target.postgres) as connection:
        if connection.execute(SHOW, (parts, *batch, attempt)).rowcount != 1:
            raise RuntimeError(f"batch {batch} was taken over from attempt {attempt}: its rows stay masked")


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
