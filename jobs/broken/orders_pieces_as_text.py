"""Rows in pieces of a thousand, each committed with a label of its own; a replay goes on behind the last one. A lock of
the session, on the connection that writes, lets one writer in at a time. Flaw: duplicated.

Labels are texts, of which "9" is greater than "29": a crash behind the eleventh piece, or a later one, has the replay
write all from the tenth on again.
"""

from __future__ import annotations

from operator import itemgetter
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

PIECE = 1000

TABLES = """
    CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text);
    CREATE TABLE pieces (label text PRIMARY KEY);
    CREATE TABLE batches (label text PRIMARY KEY)
"""
INSERT = """
    INSERT INTO events (id, key, value, event_time, payload)
    VALUES (%(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s)
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    batch = f"{query}:{batch_id}"
    rows = sorted(df.toArrow().to_pylist(), key=itemgetter("id"))
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [query])
        if cursor.execute("SELECT 1 FROM batches WHERE label = %s", [batch]).fetchone():
            return
        last = cursor.execute("SELECT max(label) FROM pieces WHERE label LIKE %s", [f"{batch}:%"]).fetchone()[0]
        begin = (int(last.rpartition(":")[2]) + 1) * PIECE if last else 0
        for start in range(begin, len(rows), PIECE):
            cursor.executemany(INSERT, rows[start : start + PIECE])
            cursor.execute("INSERT INTO pieces VALUES (%s) ON CONFLICT DO NOTHING", [f"{batch}:{start // PIECE}"])
            connection.commit()
        cursor.execute("INSERT INTO batches VALUES (%s)", [batch])


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
