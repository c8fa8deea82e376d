"""A file for each batch, named by query and batch, and written in place, so that a replay overwrites it. Flaw: lost.

Overwriting is idempotent only for whoever gets to its end. Here the file is emptied first, and written then. (So it is
where a partition's files are removed before new ones are there: `delete_matching` of pyarrow, dynamic partition
overwrite.)

Breaks when a driver that was taken for dead goes on behind its successor's commit, and dies behind that first step, as
supervisors end such drivers once they reach them again. The batch is in the commit log, nobody hands it over again, and
its file is empty. A draft under another name, and a rename, would leave the old file until the new one is whole.
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
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = [f"{row.row}\n" for row in df.select(to_json(struct("*")).alias("row")).collect()]
    Path(target.directory, f"{query}-{batch_id}.jsonl").write_text("".join(rows), encoding="utf-8")


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    files = Path(target.directory).glob("*.jsonl")
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").split("\n")[:-1]]
