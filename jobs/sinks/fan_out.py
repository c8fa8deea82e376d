"""Writes to a table and to files, one after the other, for the job of the same name. Exactly-once by idempotence.

No transaction spans the two, and a crash between them leaves a batch in one only. It holds because each of them for
itself takes a replay without harm: rows overwrite themselves, and a batch's file is replaced by the same one. What is
missing is a view of both at one time: a reader may find a batch in the table and not yet in the files.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "idempotent"
SERVICES = ("postgres", "directory")
HOLDS = ("id", "key", "value", "event_time", "payload", "place")

TABLE = """
    CREATE TABLE events (
        id bigint PRIMARY KEY, key text NOT NULL, value double precision NOT NULL,
        event_time timestamptz NOT NULL, payload text NOT NULL
    )
"""
UPSERT = """
    INSERT INTO events (id, key, value, event_time, payload)
    VALUES (%(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s)
    ON CONFLICT (id) DO UPDATE
    SET key = excluded.key, value = excluded.value, event_time = excluded.event_time, payload = excluded.payload
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLE)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    rows = df.toArrow().to_pylist()
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.executemany(UPSERT, [row for row in rows if row["place"] == "table"])
    write_file([row for row in rows if row["place"] == "files"], batch_id, Path(target.directory))


def write_file(rows: list[dict[str, Any]], batch_id: int, directory: Path) -> None:
    draft = directory / f"{batch_id}.{os.getpid()}.draft"
    draft.write_text(json.dumps(rows, default=str), encoding="utf-8")
    draft.replace(directory / f"{batch_id}.json")


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        table = connection.execute("SELECT *, 'table' AS place FROM events").fetchall()
    files = [json.loads(file.read_text(encoding="utf-8")) for file in Path(target.directory).glob("*.json")]
    return [*table, *(row for rows in files for row in rows)]
