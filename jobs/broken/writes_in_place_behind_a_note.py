"""A file for each batch, written in place, so that a replay begins it anew, behind a note for operators. Flaw: lost.

The note says that the batch is being written, and is removed when it has been; nobody reads it but people.

Breaks when a driver that was taken for dead goes on behind its successor's commit, and dies behind the first thing that
it does to the batch's own file, which is to empty it. That is not the first change that it makes: the note is.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.functions import struct, to_json

GUARANTEE = "exactly-once"
TECHNIQUE = "idempotent"
FLAW = ("lost",)
SERVICES = ("directory",)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    note, file = (Path(target.directory, f"{batch_id:06}.{suffix}") for suffix in ("writing", "jsonl"))
    note.touch()
    with file.open("w", encoding="utf-8") as lines:
        for row in df.select(to_json(struct("*")).alias("row")).toLocalIterator():
            lines.write(f"{row.row}\n")
    note.unlink(missing_ok=True)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    files = Path(target.directory).glob("*.jsonl")
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").split("\n")[:-1]]
