"""Rows that tasks stage under an id of each attempt in a table without a write-ahead log, and that the driver publishes
with the batch's id in one transaction. Flaw: lost.

What is staged need not survive a crash, it seems: whatever is not published is staged again.

Breaks when the database's server dies between the last task's end and the driver's transaction: its crash recovery
empties the table, no connection is open that would tell so, and the driver, which waits until the server is back,
publishes nothing, and records the batch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.functions import struct, to_json
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("lost",)
SERVICES = ("postgres",)

TYPES = {"bigint": "bigint", "double": "double precision", "timestamp": "timestamptz", "text": "text"}
PATIENCE = 60.0
"""Seconds for which a server that does not answer is asked again."""

TABLES = """
    CREATE TABLE events ({columns});
    CREATE UNLOGGED TABLE staged (attempt text, document json);
    CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch))
"""
STAGE = "INSERT INTO staged (attempt, document) VALUES (%s, %s)"
RECORD = "INSERT INTO ledger (query, batch) VALUES (%s, %s) ON CONFLICT DO NOTHING"
PUBLISH = """
    INSERT INTO events
    SELECT made.* FROM staged, LATERAL json_populate_record(NULL::events, staged.document) AS made
    WHERE staged.attempt = ANY (%s)
"""
DISCARD = "DELETE FROM staged WHERE attempt = ANY (%s)"


def prepare(target: SimpleNamespace) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    with connect(target.postgres) as connection:
        connection.execute(TABLES.format(columns=columns))


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    return df.select(to_json(struct("*"), {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}).alias("row"))


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    SparkSession.active().dataSource.register(Staging)
    options = {"postgres": target.postgres, "checkpoint": target.checkpoint}
    return stream.format(Staging.name()).options(**options)


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """What a task hands over: under which id its rows are staged."""

    attempt: str


class Staging(DataSource):
    @classmethod
    def name(cls) -> str:
        return "stages_unlogged"

    def streamWriter(self, schema: StructType, overwrite: bool) -> StagingWriter:
        return StagingWriter(self.options)


class StagingWriter(DataSourceStreamWriter):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.postgres = options["postgres"]
        self.checkpoint = Path(options["checkpoint"])

    def write(self, iterator: Iterator[Row]) -> Staged:
        attempt = uuid4().hex
        with connect(self.postgres) as connection, connection.cursor() as cursor:
            cursor.executemany(STAGE, [(attempt, row.row) for row in iterator])
        return Staged(attempt)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        attempts = [message.attempt for message in messages if isinstance(message, Staged)]
        query = json.loads((self.checkpoint / "metadata").read_text())["id"]
        with connect(self.postgres) as connection, connection.cursor() as cursor:
            cursor.execute(RECORD, (query, batchId))
            if cursor.rowcount == 1:
                cursor.execute(PUBLISH, (attempts,))
            cursor.execute(DISCARD, (attempts,))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing: what is staged is published by its attempt's id, or never."""


def connect(postgres: str) -> psycopg.Connection[Any]:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return psycopg.connect(postgres)
        except psycopg.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.25)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
