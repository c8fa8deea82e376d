"""A file for each batch, renamed to its name and synced then, with its directory. Flaw: lost.

Says DURABLE = True, and is right where a loss of power takes all that was not synced. A batch whose file is there is
skipped, but its file and the directory are synced again: its driver may have died in between.

Breaks when power is lost between the rename and the file's sync, and the rename is on the disk though the file's
content is not (ext4 and XFS write names by their journal, content when they like: "zero-length files"). The replay
finds a file of that name, empty, syncs it and skips the batch. Sync the file before it is renamed.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "atomic rename"
SERVICES = ("directory",)
FLAW = ("lost",)
DURABLE = True


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    directory = Path(target.directory)
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    final = directory / f"{query}-{batch_id}.jsonl"
    if not final.exists():
        draft = directory / f"{uuid4().hex}.tmp"
        draft.write_text("".join(json.dumps(row, default=str) + "\n" for row in df.toArrow().to_pylist()), "utf-8")
        os.replace(draft, final)
    sync(final)
    sync(directory)


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    files = sorted(Path(target.directory).glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
