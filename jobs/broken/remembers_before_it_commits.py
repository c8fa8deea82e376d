"""An upsert of what is new to this process: rows that it knows to be there are left out. Flaw: lost.

What the process has written is kept in memory, so that rows which do not change cost nothing. It is noted when the
statements are done, and before they are committed.

Breaks when the commit fails (its connection is lost, a statement is cancelled), and the application starts its query
again in the same process: the rows are known, and are left out for good. A new process knows nothing. Where the batch
fails before it is noted, or behind its commit, all is well, too.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "idempotent"
FLAW = ("lost",)
SERVICES = ("postgres",)

TYPES = {"bigint": "bigint", "double": "double precision", "timestamp": "timestamptz", "text": "text"}
STATISTICS = "CREATE TABLE statistics (batch bigint PRIMARY KEY, rows bigint)"
COUNT = "INSERT INTO statistics VALUES (%s, %s) ON CONFLICT (batch) DO UPDATE SET rows = excluded.rows"
FORGET = "DELETE FROM statistics WHERE batch < %s"

there: dict[tuple[Any, ...], dict[str, Any]] = {}


def prepare(target: SimpleNamespace) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    with psycopg.connect(target.postgres) as connection:
        connection.execute(f"CREATE TABLE events ({columns}, PRIMARY KEY ({', '.join(target.key)}))")
        connection.execute(STATISTICS)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    new: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in df.toArrow().to_pylist():
        key = tuple(row[name] for name in target.key)
        if there.get(key) != row:
            new[key] = row
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        if new:
            cursor.executemany(upsert(target), list(new.values()))
        there.update(new)
    count(batch_id, len(new), target)


def count(batch_id: int, rows: int, target: SimpleNamespace) -> None:
    """For a dashboard: of the last hundred batches."""
    with psycopg.connect(target.postgres) as connection:
        connection.execute(COUNT, (batch_id, rows))
        connection.execute(FORGET, (batch_id - 100,))


def upsert(target: SimpleNamespace) -> str:
    names = list(target.columns)
    values = ", ".join(f"%({name})s" for name in names)
    others = ", ".join(f"{name} = excluded.{name}" for name in names)
    into = f"INSERT INTO events ({', '.join(names)}) VALUES ({values})"
    return f"{into} ON CONFLICT ({', '.join(target.key)}) DO UPDATE SET {others}"


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
