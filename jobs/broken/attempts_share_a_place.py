"""Rows that tasks stage at a place of their own, which they empty first, and that the driver publishes with the batch's
id in one transaction. Flaw: duplicated.

The place is that of the writer and the task. A writer is made anew for each query that is started, so that no driver
that was taken for dead can get in the way, and what a task's failed attempt has left is removed by the next one.

Breaks when the first attempt is not dead: its executor stands still, or cannot be reached, and is given up; the task
runs again elsewhere, and empties the place; then the first one wakes up, and writes the rest of its rows behind those
of the second (SPARK-4879 keeps it from committing, not from writing).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import psycopg
from psycopg.rows import dict_row
from pyspark import TaskContext
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.functions import struct, to_json
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("duplicated",)
SERVICES = ("postgres",)

TYPES = {"bigint": "bigint", "double": "double precision", "timestamp": "timestamptz", "text": "text"}
CHUNK = 12

TABLES = """
    CREATE TABLE events ({columns});
    CREATE TABLE staged (place text, document json);
    CREATE INDEX ON staged (place);
    CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch))
"""
EMPTY = "DELETE FROM staged WHERE place = ANY (%s)"
STAGE = "INSERT INTO staged (place, document) VALUES (%s, %s)"
RECORD = "INSERT INTO ledger (query, batch) VALUES (%s, %s) ON CONFLICT DO NOTHING"
PUBLISH = """
    INSERT INTO events
    SELECT made.* FROM staged, LATERAL json_populate_record(NULL::events, staged.document) AS made
    WHERE staged.place = ANY (%s)
"""


def prepare(target: SimpleNamespace) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES.format(columns=columns))


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    return df.select(to_json(struct("*"), {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}).alias("row"))


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    SparkSession.active().dataSource.register(Places)
    options = {"postgres": target.postgres, "checkpoint": target.checkpoint}
    return stream.format(Places.name()).options(**options)


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """What a task hands over: where its rows are staged."""

    place: str


class Places(DataSource):
    @classmethod
    def name(cls) -> str:
        return "attempts_share_a_place"

    def streamWriter(self, schema: StructType, overwrite: bool) -> PlacesWriter:
        return PlacesWriter(self.options)


class PlacesWriter(DataSourceStreamWriter):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.postgres = options["postgres"]
        self.checkpoint = Path(options["checkpoint"])
        self.writer = uuid4().hex

    def write(self, iterator: Iterator[Row]) -> Staged:
        context = TaskContext.get()
        assert context is not None
        place = f"{self.writer}-{context.partitionId()}"
        with psycopg.connect(self.postgres, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(EMPTY, ([place],))
            while chunk := [(place, row.row) for row in islice(iterator, CHUNK)]:
                cursor.executemany(STAGE, chunk)
        return Staged(place)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        places = places_of(messages)
        query = json.loads((self.checkpoint / "metadata").read_text())["id"]
        with psycopg.connect(self.postgres) as connection, connection.cursor() as cursor:
            cursor.execute(RECORD, (query, batchId))
            if cursor.rowcount == 1:
                cursor.execute(PUBLISH, (places,))
            cursor.execute(EMPTY, (places,))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        with psycopg.connect(self.postgres) as connection:
            connection.execute(EMPTY, (places_of(messages),))


def places_of(messages: Sequence[WriterCommitMessage | None]) -> list[str]:
    return [message.place for message in messages if isinstance(message, Staged)]


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
