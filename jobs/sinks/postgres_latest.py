"""The last event of each key, by an upsert on the key. Exactly-once by idempotence.

All events of a key lie in one Kafka partition, so their rows come in the order of arrival, and a batch is folded to the
last row of each key before it is written. A replay computes the same rows and overwrites them with themselves. The
batch's number, kept with each row, keeps a driver that wakes up late from putting an older event over a newer one.
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
ATOMIC = True

TABLE = """
    CREATE TABLE latest (
        key text PRIMARY KEY, id bigint NOT NULL, value double precision NOT NULL,
        event_time timestamptz NOT NULL, payload text NOT NULL, batch bigint NOT NULL
    )
"""
UPSERT = """
    INSERT INTO latest (key, id, value, event_time, payload, batch)
    VALUES (%(key)s, %(id)s, %(value)s, %(event_time)s, %(payload)s, %(batch)s)
    ON CONFLICT (key) DO UPDATE
    SET id = excluded.id, value = excluded.value, event_time = excluded.event_time, payload = excluded.payload,
        batch = excluded.batch
    WHERE excluded.batch >= latest.batch
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLE)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    latest = {row["key"]: row for row in df.toArrow().to_pylist()}
    rows = [row | {"batch": batch_id} for _, row in sorted(latest.items())]
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.executemany(UPSERT, rows)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT key, id, value, event_time, payload FROM latest").fetchall()
