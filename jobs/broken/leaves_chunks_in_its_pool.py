"""A batch in chunks, each a transaction by a thread of a pool; they are shown once all are there. Flaw: duplicated.

Breaks when one chunk fails while others still wait in the pool, and the application starts its query again in the same
process: a chunk that comes late is not told from those of the second try, whose process is the same.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("duplicated",)
SERVICES = ("postgres",)

TYPES = {"bigint": "bigint", "double": "double precision", "timestamp": "timestamptz", "text": "text"}
CHUNK = 20
POOL = ThreadPoolExecutor(max_workers=2)
OWNER = uuid4().hex

LEDGER = "CREATE TABLE ledger (query text, batch bigint, owner text, complete boolean, PRIMARY KEY (query, batch))"
CLAIM = """
    INSERT INTO ledger VALUES (%s, %s, %s, false)
    ON CONFLICT (query, batch) DO UPDATE SET owner = excluded.owner WHERE NOT ledger.complete
"""
CLEAR = "DELETE FROM events WHERE query = %s AND batch = %s"
HOLD = "SELECT FROM ledger WHERE query = %s AND batch = %s AND owner = %s AND NOT complete FOR SHARE"
COMPLETE = "UPDATE ledger SET complete = true WHERE query = %s AND batch = %s AND owner = %s"
SHOWN = "SELECT events.* FROM events JOIN ledger USING (query, batch) WHERE complete"


def prepare(target: SimpleNamespace) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    with psycopg.connect(target.postgres) as connection:
        connection.execute(f"CREATE TABLE events ({columns}, query text, batch bigint)")
        connection.execute(LEDGER)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    batch = (df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"), batch_id)
    rows = df.toArrow().to_pylist()
    with psycopg.connect(target.postgres) as connection:
        if connection.execute(CLAIM, (*batch, OWNER)).rowcount == 0:
            return
        connection.execute(CLEAR, batch)
    chunks = [rows[at : at + CHUNK] for at in range(0, len(rows), CHUNK)]
    for written in [POOL.submit(write_chunk, target, batch, chunk) for chunk in chunks]:
        written.result()
    with psycopg.connect(target.postgres) as connection:
        connection.execute(COMPLETE, (*batch, OWNER))


def write_chunk(target: SimpleNamespace, batch: tuple[str, int], rows: list[dict[str, Any]]) -> None:
    names = [*target.columns, "query", "batch"]
    values = ", ".join(["%s"] * len(names))
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        if cursor.execute(HOLD, (*batch, OWNER)).fetchone() is None:
            raise RuntimeError(f"batch {batch} was taken over by another driver")
        insert = f"INSERT INTO events ({', '.join(names)}) VALUES ({values})"
        cursor.executemany(insert, [(*(row[name] for name in target.columns), *batch) for row in rows])


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute(SHOWN).fetchall()
