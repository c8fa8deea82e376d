"""An upsert by key that goes on where a crash stopped it, and so leaves an older event of a key in place: stale.

Rows are written in chunks, each with a commit of its own. A replay skips the keys that the batch has written before the
crash. But a key comes several times in a batch: its last event may lie in a chunk that was never written. While nothing
fails there is nothing to skip, and the last event of each key stands.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "idempotent"
SERVICES = ("postgres",)
HOLDS = ("id", "key", "value", "event_time", "payload")
KEY = ("key",)
FLAW = ("stale",)

CHUNK = 50

TABLE = """
    CREATE TABLE latest (
        key text PRIMARY KEY, id bigint NOT NULL, value double precision NOT NULL,
        event_time timestamptz NOT NULL, payload text NOT NULL, batch bigint NOT NULL
    )
"""
WRITTEN = "SELECT key FROM latest WHERE batch = %s"
UPSERT = """
    INSERT INTO latest (key, id, value, event_time, payload, batch)
    VALUES (%(key)s, %(id)s, %(value)s, %(event_time)s, %(payload)s, %(batch)s)
    ON CONFLICT (key) DO UPDATE
    SET id = excluded.id, value = excluded.value, event_time = excluded.event_time, payload = excluded.payload,
        batch = excluded.batch
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLE)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    rows = [row | {"batch": batch_id} for row in df.toArrow().to_pylist()]
    with psycopg.connect(target.postgres, autocommit=True) as connection, connection.cursor() as cursor:
        written = {key for (key,) in cursor.execute(WRITTEN, [batch_id])}
        missing = [row for row in rows if row["key"] not in written]
        for start in range(0, len(missing), CHUNK):
            with connection.transaction():
                cursor.executemany(UPSERT, missing[start : start + CHUNK])


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT key, id, value, event_time, payload FROM latest").fetchall()
