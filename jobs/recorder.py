"""Keeps the rows of each attempt at a batch in a file of its own, so that they can be compared.

Shows whether a job gives the same rows when a batch is run again. As a sink it is at-least-once.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as parquet
from pyspark.sql import DataFrame

GUARANTEE = "at-least-once"
SERVICES = ("directory",)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    """One attempt: ``BATCH-NANOSECONDS.parquet``, whole or not there."""
    file = Path(target.directory) / f"{batch_id}-{time.time_ns()}.parquet"
    draft = file.with_suffix(".tmp")
    parquet.write_table(df.toArrow(), draft)
    os.replace(draft, file)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    files = sorted(Path(target.directory).glob("*.parquet"))
    return [row for file in files for row in parquet.read_table(file).to_pylist()]
