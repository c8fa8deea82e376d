"""Files of a batch that one call copies to where readers look; a batch with a directory there is skipped. Flaw: lost.

Breaks when the process dies within that call: the batch's directory is there, and not all of its files, or one of them
is empty. No line of this file lies between two of the call's changes.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.functions import struct, to_json

GUARANTEE = "exactly-once"
TECHNIQUE = "atomic rename"
FLAW = ("lost",)
SERVICES = ("directory",)

ROWS_OF_A_FILE = 20


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    final = Path(target.directory, "final", str(batch_id))
    if final.exists():
        return
    aside = Path(target.directory, "aside", str(batch_id))
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    rows = [f"{row.row}\n" for row in df.select(to_json(struct("*")).alias("row")).collect()]
    for start in range(0, len(rows), ROWS_OF_A_FILE):
        (aside / f"{start}.jsonl").write_text("".join(rows[start : start + ROWS_OF_A_FILE]), encoding="utf-8")
    shutil.copytree(aside, final)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    files = Path(target.directory, "final").glob("*/*.jsonl")
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").split("\n")[:-1]]
