"""Rows and ledger in two SQLite databases, of which one connection has attached the other, both with a write-ahead log.
Flaw: lost.

One COMMIT ends the transaction in both. With a rollback journal that is atomic; with a write-ahead log each database
has a log of its own, and they are written one after the other (https://www.sqlite.org/lang_attach.html). Breaks when
the process dies in between, within that COMMIT: the ledger has the batch, and its rows are gone. No line of this file
lies between the two.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.functions import struct, to_json

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("lost",)
SERVICES = ("directory",)


def prepare(target: SimpleNamespace) -> None:
    with closing(connect(target)) as connection:
        connection.execute("CREATE TABLE rows.events (row TEXT)")
        connection.execute("CREATE TABLE main.batches (query TEXT, batch INTEGER, PRIMARY KEY (query, batch))")


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = df.select(to_json(struct("*")).alias("row")).collect()
    with closing(connect(target)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        taken = connection.execute("INSERT OR IGNORE INTO main.batches VALUES (?, ?)", (query, batch_id)).rowcount
        if taken:
            connection.executemany("INSERT INTO rows.events VALUES (?)", [(row.row,) for row in rows])
        connection.execute("COMMIT")


def connect(target: SimpleNamespace) -> sqlite3.Connection:
    connection = sqlite3.connect(Path(target.directory, "ledger.db"), timeout=60, isolation_level=None)
    connection.execute("ATTACH ? AS rows", (str(Path(target.directory, "events.db")),))
    for database in ("main", "rows"):
        connection.execute(f"PRAGMA {database}.journal_mode = WAL")
    return connection


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with closing(connect(target)) as connection:
        return [json.loads(row) for (row,) in connection.execute("SELECT row FROM rows.events")]
