"""Rows are staged, and inserted where the table does not have them yet; then the batch is audited. Flaw: duplicated.

The table has no unique constraint, as in a warehouse: NOT EXISTS (a MERGE that only inserts, INSERT ... EXCEPT) is what
keeps a replay from writing again. At READ COMMITTED it sees what was committed when the statement began. The audit
row has a transaction of its own, behind that of the rows.

Breaks when a driver that was taken for dead goes on before its COMMIT: its successor has found nothing either, and
written the batch. A unique constraint, or a lock that both ask for first, would make one of them see the other.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "idempotent"
FLAW = ("duplicated",)
SERVICES = ("postgres",)
HOLDS = ("id", "key", "value", "event_time", "payload")

TABLES = """
    CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text);
    CREATE INDEX ON events (id);
    CREATE TABLE audit (batch bigint, rows bigint, at timestamptz DEFAULT now())
"""
STAGE = "CREATE TEMP TABLE batch (LIKE events) ON COMMIT DROP"
COPY = "COPY batch (id, key, value, event_time, payload) FROM STDIN"
MISSING = "INSERT INTO events SELECT * FROM batch WHERE NOT EXISTS (SELECT 1 FROM events WHERE events.id = batch.id)"
AUDIT = "INSERT INTO audit (batch, rows) VALUES (%s, %s)"


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    rows = df.select(*HOLDS).toArrow().to_pylist()
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.execute(STAGE)
        with cursor.copy(COPY) as copy:
            for row in rows:
                copy.write_row(list(row.values()))
        cursor.execute(MISSING)
    with psycopg.connect(target.postgres) as connection:
        connection.execute(AUDIT, (batch_id, len(rows)))


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
