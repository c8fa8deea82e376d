"""A parquet file for each batch under a new name, a manifest of those that count, replaced atomically, and a marker
for those who wait for news. Flaws: lost, withdrawn.

The manifest is read as late as possible, right before it is replaced, and a batch that it names is skipped.

Breaks as jobs/broken/replaces_its_manifest.py does: a driver that was taken for dead between its look at the manifest
and the rename puts back what it had read when its successor has done the next batch, too. It only has three more
changes in front of that look (the file, its sync, its rename), and one behind it (the marker).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pyarrow.parquet as parquet
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "atomic rename"
SERVICES = ("directory",)
FLAW = ("lost", "withdrawn")
ATOMIC = True

MANIFEST = "manifest.json"


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    directory = Path(target.directory)
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    batch = f"{query}-{batch_id}"
    table = df.toArrow()
    name = f"{uuid4().hex}.parquet"
    draft = directory / f"{uuid4().hex}.tmp"
    parquet.write_table(table, draft)
    sync(draft)
    os.replace(draft, directory / name)
    entries = manifest(directory)
    if batch in entries:
        return
    new = directory / f"{uuid4().hex}.json"
    new.write_text(json.dumps(entries | {batch: name}), encoding="utf-8")
    sync(new)
    os.replace(new, directory / MANIFEST)
    (directory / "_SUCCESS").write_text(batch, encoding="utf-8")


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def manifest(directory: Path) -> dict[str, str]:
    """The file of each batch that counts."""
    try:
        entries: dict[str, str] = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:  # no batch yet
        return {}
    return entries


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    directory = Path(target.directory)
    return [row for name in manifest(directory).values() for row in parquet.read_table(directory / name).to_pylist()]
