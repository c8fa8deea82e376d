"""A file for each batch, synced and renamed, and its directory synced; one that is there stays. Flaws: lost, withdrawn.

A name that an earlier driver has left unsynced is synced with the next batch.

Breaks when a driver ends between the rename and the sync of the directory (a crash, or that sync fails): the replay
finds the file, and leaves it at that. The engine records the batch, whose name nobody has synced, and a loss of power
before the next batch takes it away for good.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pyarrow.parquet as parquet
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "atomic rename"
FLAW = ("lost", "withdrawn")
SERVICES = ("directory",)
DURABLE = True


def prepare(target: SimpleNamespace) -> None:
    Path(target.directory, "batches").mkdir()


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    directory = Path(target.directory, "batches")
    file = directory / f"{batch_id}.parquet"
    if file.exists():
        return
    sync(directory)
    draft = directory / f"{batch_id}.{uuid4().hex}.tmp"
    parquet.write_table(df.toArrow(), draft)
    sync(draft)
    os.replace(draft, file)
    sync(directory)


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    files = Path(target.directory, "batches").glob("*.parquet")
    return [row for file in files for row in parquet.read_table(file).to_pylist()]
