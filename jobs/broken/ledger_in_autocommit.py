"""The ledger's entry and the rows in one list of statements, which one line executes in autocommit. Flaw: lost.

Breaks when the process dies, or its connection, among the statements of that line: the batch is known then, so its
replay writes nothing. No line of this file lies between two of them.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from psycopg.sql import SQL, Literal
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("lost",)
SERVICES = ("postgres",)
HOLDS = ("id", "key", "value", "event_time", "payload")

ROWS_OF_A_STATEMENT = 100

EVENTS = "CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text)"
LEDGER = "CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch))"
KNOWN = "SELECT 1 FROM ledger WHERE query = %s AND batch = %s"
RECORD = SQL("INSERT INTO ledger (query, batch) VALUES ({}, {})")
INSERT = SQL("INSERT INTO events (id, key, value, event_time, payload) VALUES {}")


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(EVENTS)
        connection.execute(LEDGER)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = [tuple(row) for row in df.select(*HOLDS).collect()]
    with psycopg.connect(target.postgres, autocommit=True) as connection:
        if connection.execute(KNOWN, (query, batch_id)).fetchone() is None:
            statements = [RECORD.format(query, batch_id), *inserts(rows)]
            list(map(connection.execute, statements))


def inserts(rows: list[tuple[Any, ...]]) -> list[Any]:
    parts = [rows[start : start + ROWS_OF_A_STATEMENT] for start in range(0, len(rows), ROWS_OF_A_STATEMENT)]
    return [INSERT.format(SQL(", ").join(values(row) for row in part)) for part in parts]


def values(row: tuple[Any, ...]) -> Any:
    return SQL("({})").format(SQL(", ").join(map(Literal, row)))


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
