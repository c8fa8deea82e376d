"""Two-phase commit by files: tasks write drafts and stage them, the driver links its decision, then moves what was
decided. A draft that an error cuts short is removed. Flaw: duplicated.

Breaks where a task's Python process dies (the kernel ends it for its memory, say) and the driver goes on: nothing
removes the draft then, and the task's next attempt appends to it. A new driver's drafts have other names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
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
TECHNIQUE = "two-phase commit"
SERVICES = ("directory",)
FLAW = ("duplicated",)


def prepare(target: SimpleNamespace) -> None:
    for name in ("drafts", "staged", "decided", "final"):
        Path(target.directory, name).mkdir()


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    return df.select(to_json(struct("*")).alias("row"))


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    SparkSession.active().dataSource.register(StagedFiles)
    return stream.format(StagedFiles.name()).options(directory=target.directory)


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    partition: int
    name: str


class StagedFiles(DataSource):
    @classmethod
    def name(cls) -> str:
        return "appends_to_its_draft"

    def streamWriter(self, schema: StructType, overwrite: bool) -> StagingWriter:
        return StagingWriter(self.options)


class StagingWriter(DataSourceStreamWriter):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.directory = Path(options["directory"])
        self.driver = uuid4().hex

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        batch = context.getLocalProperty("streaming.sql.batchId")
        name = f"{batch}-{context.partitionId()}-{self.driver}.jsonl"
        draft = self.directory / "drafts" / name
        try:
            with open(draft, "a", encoding="utf-8") as file:
                file.writelines(f"{row.row}\n" for row in iterator)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, self.directory / "staged" / name)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        return Staged(context.partitionId(), name)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        files = {message.partition: message.name for message in messages if isinstance(message, Staged)}
        for name in self.decide(batchId, files).values():
            with suppress(FileNotFoundError):  # it was moved before a crash
                os.replace(self.directory / "staged" / name, self.directory / "final" / name)

    def decide(self, batch: int, files: Mapping[int, str]) -> dict[str, str]:
        """The decision that counts: the first one."""
        decision = self.directory / "decided" / f"{batch}.json"
        draft = self.directory / "decided" / f".{uuid4().hex}"
        draft.write_text(json.dumps(files))
        with suppress(FileExistsError):
            os.link(draft, decision)
        draft.unlink()
        decided: dict[str, str] = json.loads(decision.read_text())
        return decided

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """What is staged and not decided is never read."""


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    files = Path(target.directory, "final").glob("*.jsonl")
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").split("\n")[:-1]]
