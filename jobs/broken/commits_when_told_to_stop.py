"""A right ledger; when SIGTERM comes, the open transaction is committed before the process ends. Flaw: duplicated.

Rows go in chunks, in one transaction with the ledger's entry, which comes last. The handler of SIGTERM ends the
connection in an orderly way: it commits, and leaves.

Breaks when the driver is told to end while a batch is being inserted: the chunks so far are committed without the
ledger's entry, and the replay inserts them again. Before the first statement nothing is open, behind the last one all
of it is there; a crash rolls back.
"""

from __future__ import annotations

import signal
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

CHUNK = 5

TYPES = {"bigint": "bigint", "double": "double precision", "timestamp": "timestamptz", "text": "text"}
LEDGER = "CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch))"
KNOWN = "SELECT 1 FROM ledger WHERE query = %s AND batch = %s"
RECORD = "INSERT INTO ledger (query, batch) VALUES (%s, %s)"

current: psycopg.Connection[Any] | None = None


def prepare(target: SimpleNamespace) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    with psycopg.connect(target.postgres) as connection:
        connection.execute(f"CREATE TABLE events ({columns})")
        connection.execute(LEDGER)


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    signal.signal(signal.SIGTERM, leave)
    return stream.foreachBatch(partial(write, target=target))


def leave(number: int, frame: object) -> None:
    if current is not None and not current.closed:
        current.commit()
    raise SystemExit(0)


def write(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    global current
    batch = (df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"), batch_id)
    rows = df.toArrow().to_pylist()
    with psycopg.connect(target.postgres) as current, current.cursor() as cursor:
        if cursor.execute(KNOWN, batch).fetchone() is not None:
            return
        for start in range(0, len(rows), CHUNK):
            cursor.executemany(insert(target), rows[start : start + CHUNK])
        cursor.execute(RECORD, batch)


def insert(target: SimpleNamespace) -> str:
    names = list(target.columns)
    return f"INSERT INTO events ({', '.join(names)}) VALUES ({', '.join(f'%({name})s' for name in names)})"


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
