"""Spark's own file sink, read as a bare directory: at-least-once.

Its tasks write Parquet files in the place where they stay, under names that are new each time. Which of them count is
said by the manifest in _spark_metadata (see file_manifest: the same sink); a reader of the bare directory (Hive, Trino,
a glob) takes them all. Nothing is lost: the files are complete before the batch's entry in the manifest is.

The window for duplicates is from a task's end to that entry: a driver that dies in it writes the batch anew, next to
the files of the tasks that had ended. So does a task that fails after its file was complete. A batch with an entry is
not written again.

A file without a footer is the rest of a task that never ended, and is left out.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
from pyspark.sql.streaming.readwriter import DataStreamWriter

GUARANTEE = "at-least-once"
TECHNIQUE = "append"
SERVICES = ("directory",)


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    return stream.format("parquet").option("path", f"{target.directory}/events")


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    files = sorted(Path(target.directory, "events").glob("*.parquet"))
    return [row for file in files for row in rows_of(file)]


def rows_of(file: Path) -> list[dict[str, Any]]:
    try:
        rows: list[dict[str, Any]] = parquet.ParquetFile(file).read().to_pylist()
    except pa.ArrowInvalid:  # still being written, or never finished
        return []
    return rows
