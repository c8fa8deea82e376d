"""Files renamed in two phases, where the decision is made by a listing of the directory. Flaw: duplicated.

Tasks leave complete files aside; commit() writes down which of them are the batch's, and renames these. It takes all
that lie there under the batch's number, and not those that the tasks of this attempt have handed over: prepared is
taken for decided.

Breaks when the driver dies after a task's end and before the decision, or a task fails behind its file: what the first
attempt left is promoted together with what the second one wrote. Seen in Spark, where a job committed what the tasks of
a killed one had left under the same path (SPARK-29037).
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
    for name in ("in-progress", "pending", "decided", "final"):
        Path(target.directory, name).mkdir()


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    return df.select(to_json(struct("*")).alias("row"))


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    SparkSession.active().dataSource.register(PromotedFiles)
    return stream.format(PromotedFiles.name()).options(directory=target.directory)


class PromotedFiles(DataSource):
    @classmethod
    def name(cls) -> str:
        return "promotes_what_it_finds"

    def streamWriter(self, schema: StructType, overwrite: bool) -> PromotingWriter:
        return PromotingWriter(self.options)


class PromotingWriter(DataSourceStreamWriter):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.directory = Path(options["directory"])

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        batch = str(context.getLocalProperty("streaming.sql.batchId"))
        if (self.directory / "decided" / batch).exists():
            deque(iterator, maxlen=0)
            return WriterCommitMessage()
        name = f"{batch}-{context.partitionId()}-{uuid4().hex}.jsonl"
        with open(self.directory / "in-progress" / name, "x", encoding="utf-8") as file:
            file.writelines(f"{row.row}\n" for row in iterator)
        os.rename(self.directory / "in-progress" / name, self.directory / "pending" / name)
        return WriterCommitMessage()

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        decision = self.directory / "decided" / str(batchId)
        if not decision.exists():
            names = [file.name for file in (self.directory / "pending").glob(f"{batchId}-*")]
            draft = decision.with_name(f".{batchId}.{uuid4().hex}")
            draft.write_text(json.dumps(names))
            os.rename(draft, decision)
        for name in json.loads(decision.read_text()):
            if (self.directory / "pending" / name).exists():
                os.rename(self.directory / "pending" / name, self.directory / "final" / name)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """What is pending is dealt with by the next commit()."""


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    files = Path(target.directory, "final").glob("*.jsonl")
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").split("\n")[:-1]]
