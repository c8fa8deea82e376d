"""Spark's own file sink, taken for exactly-once by a reader that does not go by its manifest. Flaw: duplicated.

Exactly-once is what _spark_metadata says which files count. A reader of all files of the directory also gets those of
tasks that had ended when the driver died, whose rows lie in other files, too.

Breaks when the driver dies, or a task fails, after the first task has ended and before the batch's entry in the
manifest. Seen wherever another reader takes over (Hive, Trino, a path with a glob or of one partition), as in "Is
Structured Streaming Exactly-Once? Well, it depends..." (Kevin Wallimann, dev.to/kevinwallimann).
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
from pyspark.sql.streaming.readwriter import DataStreamWriter

GUARANTEE = "exactly-once"
TECHNIQUE = "atomic rename"
FLAW = ("duplicated",)
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
