"""Writes to a table and to files, for the job fan_out, with one ledger that is committed with the table. Flaw: lost.

Breaks when the driver dies between the two: the replay finds the batch in the ledger, and its file is never written.
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
TECHNIQUE = "ledger"
FLAW = ("lost",)
SERVICES = ("postgres", "directory")
HOLDS = ("id", "key", "value", "event_time", "payload", "place")

EVENTS = "CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text)"
LEDGER = "CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch))"
RECORD = "INSERT INTO ledger (query, batch) VALUES (%s, %s) ON CONFLICT DO NOTHING"
INSERT = """
    INSERT INTO events (id, key, value, event_time, payload)
    VALUES (%(id)s, %(key)s, %(value)s, %(event_time)s, %(payload)s)
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(EVENTS)
        connection.execute(LEDGER)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = df.toArrow().to_pylist()
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.execute(RECORD, (query, batch_id))
        if cursor.rowcount == 0:
            return
        cursor.executemany(INSERT, [row for row in rows if row["place"] == "table"])
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
