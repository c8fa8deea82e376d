"""Each task writes a file that is named after batch, partition and attempt; the driver takes the file of each
partition's highest attempt, and puts all of them into the batch's own file, by a rename. Flaw: lost.

A task that is tried again has a higher attempt, and a replay writes over what the driver before it has left. Breaks
where that one had come to a second attempt of a task, and died in the middle of it: the replay's attempts begin with 0
again, and the highest is what was cut short.
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
TECHNIQUE = "atomic rename"
SERVICES = ("directory",)
FLAW = ("lost",)


def prepare(target: SimpleNamespace) -> None:
    for name in ("parts", "final"):
        Path(target.directory, name).mkdir()


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    parts, final = Path(target.directory, "parts"), Path(target.directory, "final")

    def write(rows: Iterator[Row]) -> None:
        context = TaskContext.get()
        assert context is not None
        name = f"{batch_id}-{context.partitionId()}-{context.attemptNumber()}.jsonl"
        with open(parts / name, "w", encoding="utf-8") as file:
            file.writelines(f"{row.row}\n" for row in rows)

    lines = df.select(to_json(struct("*")).alias("row"))
    lines.foreachPartition(write)
    draft = final / f".{uuid4().hex}"
    with open(draft, "wb") as whole:
        for partition in range(lines.rdd.getNumPartitions()):
            whole.write(max(parts.glob(f"{batch_id}-{partition}-*.jsonl"), key=attempt_of).read_bytes())
    os.replace(draft, final / f"{batch_id}.jsonl")


def attempt_of(part: Path) -> int:
    return int(part.stem.rpartition("-")[2])


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    files = Path(target.directory, "final").glob("*.jsonl")
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").split("\n")[:-1]]
