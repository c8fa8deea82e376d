"""Files that each task moves to their place at its own end, before all of the batch's tasks are done. Flaw: duplicated.

A task writes its file aside and renames it into the readers' directory when it is complete; commit() records the batch,
and a batch with a record is skipped. Each file appears whole, but the batch does not.

Breaks when the driver dies after the first task's end and before the record: what was moved stays, and the replay moves
other files there. It is what version 2 of Hadoop's FileOutputCommitter does, for which Spark went back to version 1
(SPARK-33019, MAPREDUCE-7282).
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from pyspark import TaskContext
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.functions import struct, to_json
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

GUARANTEE = "exactly-once"
TECHNIQUE = "atomic rename"
FLAW = ("duplicated",)
SERVICES = ("directory",)


def prepare(target: SimpleNamespace) -> None:
    for name in ("aside", "done", "final"):
        Path(target.directory, name).mkdir()


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    return df.select(to_json(struct("*")).alias("row"))


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    SparkSession.active().dataSource.register(MovedFiles)
    return stream.format(MovedFiles.name()).options(directory=target.directory)


class MovedFiles(DataSource):
    @classmethod
    def name(cls) -> str:
        return "moved_by_tasks"

    def streamWriter(self, schema: StructType, overwrite: bool) -> MovingWriter:
        return MovingWriter(self.options)


class MovingWriter(DataSourceStreamWriter):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.directory = Path(options["directory"])

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        batch = str(context.getLocalProperty("streaming.sql.batchId"))
        if (self.directory / "done" / batch).exists():
            deque(iterator, maxlen=0)
            return WriterCommitMessage()
        name = f"{batch}-{context.partitionId()}-{uuid4().hex}.jsonl"
        with open(self.directory / "aside" / name, "x", encoding="utf-8") as file:
            file.writelines(f"{row.row}\n" for row in iterator)
        os.rename(self.directory / "aside" / name, self.directory / "final" / name)
        return WriterCommitMessage()

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        (self.directory / "done" / str(batchId)).touch()

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """What was moved stays."""


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    files = Path(target.directory, "final").glob("*.jsonl")
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").split("\n")[:-1]]
