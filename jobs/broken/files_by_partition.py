"""Each task writes a file that is named after batch and partition, and renames it into place. Flaw: duplicated.

A task that runs again, and a batch that comes again, replace their own files. Breaks when a batch comes again in fewer
partitions than before, after a change of the job's options or of its cluster: files of partitions that are no more
stay, and their rows lie in those of the others as well. (In more partitions all files are replaced.)
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from pyspark import TaskContext
from pyspark.sql import DataFrame, Row
from pyspark.sql.functions import struct, to_json

GUARANTEE = "exactly-once"
TECHNIQUE = "idempotent"
FLAW = ("duplicated",)
SERVICES = ("directory",)


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    return df.select(to_json(struct("*")).alias("row"))


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query, directory = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"), Path(target.directory)

    def write(rows: Iterator[Row]) -> None:
        context = TaskContext.get()
        assert context is not None
        file = directory / f"{query}-{batch_id}-{context.partitionId()}.jsonl"
        draft = directory / f".{uuid4().hex}"
        draft.write_text("".join(f"{row.row}\n" for row in rows), encoding="utf-8")
        os.replace(draft, file)

    df.foreachPartition(write)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    files = sorted(Path(target.directory).glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").split("\n") if line]
