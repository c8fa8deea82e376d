"""A directory for each batch, with a marker once the rows are there, published by a rename. Flaw: lost.

A batch that is published is skipped. One with a marker is whole and only published, and what has no marker is staged
anew.

Breaks when the driver dies right behind the making of the marker: that stands inside the ``with`` of the rows' file,
whose last rows are still in Python's buffer. At the restart the marker vouches for a file that is empty or cut off.
Before the next change, the file's closing, the rows are where they belong, so that a crash before each change of a file
shows nothing: it has to come behind one. Two drivers at once share the directory, too.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "atomic rename"
FLAW = ("lost",)
SERVICES = ("directory",)
ATOMIC = True

MARKER = "_SUCCESS"
ROWS = "rows.jsonl"


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    staged = Path(target.directory, f"_{query}-{batch_id}")
    published = Path(target.directory, f"{query}-{batch_id}")
    if published.exists():
        return
    if not (staged / MARKER).exists():
        stage(staged, df.toArrow().to_pylist())
    staged.rename(published)


def stage(directory: Path, rows: list[dict[str, Any]]) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    with (directory / ROWS).open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, default=str) + "\n")
        (directory / MARKER).touch()


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    files = Path(target.directory).glob(f"[!_]*/{ROWS}")
    return [json.loads(line) for file in sorted(files) for line in file.read_text(encoding="utf-8").splitlines()]
