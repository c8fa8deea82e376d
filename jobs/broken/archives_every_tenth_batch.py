"""A right ledger; every tenth batch moves all rows to an archive, in two transactions. Flaw: duplicated.

Ten is what Spark's own file sink takes (spark.sql.streaming.fileSink.log.compactInterval). The first such batch is the
one with id 9: the first nine never run that code.

Breaks when the driver, or its connection, dies between the copy and the removal, behind batch 9's own commit: readers
see all rows so far in both tables, and the replay, which finds the batch in the ledger, leaves them there.
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

EVERY = 10

TABLES = """
    CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text);
    CREATE TABLE archive (LIKE events);
    CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch))
"""
RECORD = "INSERT INTO ledger (query, batch) VALUES (%s, %s) ON CONFLICT DO NOTHING"
INSERT = """
    INSERT INTO events (id, key, value, event_time, payload)
    VALUES (%(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s)
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = df.toArrow().to_pylist()
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.execute(RECORD, (query, batch_id))
        if cursor.rowcount != 1:
            return
        cursor.executemany(INSERT, rows)
        connection.commit()
        if (batch_id + 1) % EVERY == 0:
            cursor.execute("INSERT INTO archive SELECT * FROM events")
            connection.commit()
            cursor.execute("TRUNCATE events")


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM archive UNION ALL SELECT * FROM events").fetchall()
