"""A file for each batch, renamed to its final name when it is whole; nothing is synced. Flaw: lost.

The name follows from query and batch, so a replay writes the same file again: a crash of the process costs nothing.

Breaks when the machine loses its power once the engine has recorded the batch: the rename, or what was written to the
file, had not reached the disk. That is what LevelDB and others met on ext4 and btrfs ("All File Systems Are Not Created
Equal", OSDI 2014, section 4).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql.functions import struct, to_json

GUARANTEE = "exactly-once"
TECHNIQUE = "atomic rename"
FLAW = ("lost",)
SERVICES = ("directory",)
DURABLE = True


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    final = Path(target.directory, f"{query}-{batch_id}.jsonl")
    draft = final.with_name(f".{uuid4().hex}")
    rows = [f"{row.row}\n" for row in df.select(to_json(struct("*")).alias("row")).collect()]
    draft.write_text("".join(rows), encoding="utf-8")
    os.replace(draft, final)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    files = Path(target.directory).glob("*.jsonl")
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").split("\n")[:-1]]
