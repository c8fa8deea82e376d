"""Two-phase commit by renaming files, through Spark's Python data source API: exactly-once for readers of final files.

    in-progress/  a task writes its file here, and syncs it to disk
    pending/      at the task's end it is renamed into this directory: prepared
    decided/      the driver's commit() records which pending files are the batch's, and under which final names
    final/        and renames these: readers take what lies here

Why it holds: the record of a decision appears whole, and only once for each batch (a hard link to a complete draft). A
batch without one is written anew under new names, and what lies around of it is not looked at. A batch with one is not
written again: its pending files are renamed until all of them are final. A final name follows from query, batch and the
number in the decision, so a rename that is repeated meets the same file. Only when all are final, what else is left of
the batch is removed. Two drivers at once both follow the decision that was first.

Windows: a batch is seen file by file. A reader that removes or moves final files while their batch is in flight stops
the job, because then nothing says that they were there. What a task writes that outlives its batch stays in-progress or
pending, unseen. It needs one file system with hard links and atomic renames for all of it; object stores have neither.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO
from uuid import uuid4

from pyspark import TaskContext
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.functions import struct, to_json
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

GUARANTEE = "exactly-once"
TECHNIQUE = "atomic rename"
SERVICES = ("directory",)
DURABLE = True

IN_PROGRESS, PENDING, DECIDED, FINAL = STAGES = ("in-progress", "pending", "decided", "final")

Renames = dict[str, str]
"""The decision on a batch: its pending files' names, and what they are to be called."""


def prepare(target: SimpleNamespace) -> None:
    for stage in STAGES:
        Path(target.directory, stage).mkdir()


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    """Rows as JSON, times with all their digits and their zone: Python would show them in the worker's time zone."""
    return df.select(to_json(struct("*"), {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}).alias("row"))


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    SparkSession.active().dataSource.register(RenamedFiles)
    options = {"directory": target.directory, "checkpoint": target.checkpoint}
    return stream.format(RenamedFiles.name()).options(**options)


@dataclass(frozen=True)
class Pending(WriterCommitMessage):
    """What a task hands over: the name of its pending file, or None if it wrote nothing."""

    name: str | None


class RenamedFiles(DataSource):
    @classmethod
    def name(cls) -> str:
        return "file_rename"

    def streamWriter(self, schema: StructType, overwrite: bool) -> RenamingWriter:
        return RenamingWriter(self.options)


class RenamingWriter(DataSourceStreamWriter):
    """write() runs in the executors' Python workers, commit() and abort() in one on the driver's side."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.directory = Path(options["directory"])
        self.checkpoint = Path(options["checkpoint"])

    def write(self, iterator: Iterator[Row]) -> Pending:
        context = TaskContext.get()
        assert context is not None
        query = context.getLocalProperty("sql.streaming.queryId")
        batch = f"{query}-{context.getLocalProperty('streaming.sql.batchId')}"
        first = next(iterator, None)
        if first is None or read_decision(self.directory, batch) is not None:
            deque(iterator, maxlen=0)
            return Pending(None)
        name = f"{batch}-{context.partitionId()}-{uuid4().hex}.jsonl"
        with open(self.directory / IN_PROGRESS / name, "x", encoding="utf-8") as file:
            file.write(f"{first.row}\n")
            file.writelines(f"{row.row}\n" for row in iterator)
            sync(file)
        os.rename(self.directory / IN_PROGRESS / name, self.directory / PENDING / name)
        return Pending(name)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        batch = f"{query_id(self.checkpoint)}-{batchId}"
        pending = [message.name for message in messages if isinstance(message, Pending) and message.name]
        sync_directory(self.directory / PENDING)
        renames = {name: f"{batch}-{number}.jsonl" for number, name in enumerate(pending)}
        for name, final in decide(self.directory, batch, renames).items():
            finish(self.directory / PENDING / name, self.directory / FINAL / final)
        sync_directory(self.directory / FINAL)
        for stage in (IN_PROGRESS, PENDING):
            for left in (self.directory / stage).glob(f"{batch}-*"):
                left.unlink(missing_ok=True)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing: what is decided has to stay, and the rest is removed when the batch has been written."""


def finish(pending: Path, final: Path) -> None:
    """Renames it, or finds that this was done. Anything else would be a loss, and raises."""
    if pending.exists():
        os.replace(pending, final)
    elif not final.exists():
        raise RuntimeError(f"{pending.name} was decided, and is neither pending nor final: its rows are lost")


def query_id(checkpoint: Path) -> str:
    return str(json.loads((checkpoint / "metadata").read_text())["id"])


def read_decision(directory: Path, batch: str) -> Renames | None:
    try:
        renames: Renames = json.loads((directory / DECIDED / f"{batch}.json").read_text())
    except FileNotFoundError:
        return None
    return renames


def decide(directory: Path, batch: str, renames: Renames) -> Renames:
    """Makes the decision unless there is one; returns the one that counts.

    A hard link to a file that is complete and on disk: it appears whole, and only if there is none.
    """
    draft = directory / DECIDED / f".{batch}.{uuid4().hex}"
    with open(draft, "x") as file:
        json.dump(renames, file)
        sync(file)
    with suppress(FileExistsError):
        os.link(draft, directory / DECIDED / f"{batch}.json")
    draft.unlink()
    sync_directory(directory / DECIDED)
    made = read_decision(directory, batch)
    assert made is not None
    return made


def sync(file: TextIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    files = Path(target.directory, FINAL).glob("*.jsonl")
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").split("\n")[:-1]]
