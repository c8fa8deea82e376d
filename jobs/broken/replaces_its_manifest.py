"""A file for each batch under a new name, and a manifest of those that count, replaced atomically. Flaws: lost,
withdrawn.

The manifest is read, a known batch is skipped, its rows are written to a file that nobody else knows, and the manifest
with one more entry is renamed over the old one. So a reader sees whole batches, and a crash anywhere leaves the old
manifest or the new one.

Breaks when a driver that was taken for dead behind its look at the manifest goes on after its successor has done the
next batch, too: it puts back what it had read, with its own batch added. The entry of the next one is gone: readers
have seen its rows, it is in Spark's commit log, and never comes again. Going on earlier does no harm: the successor's
own rename comes behind it. An atomic rename is no compare-and-set: for that each version of the manifest needs a name
of its own, which only one can link (os.link), as Delta's log has.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "atomic rename"
FLAW = ("lost", "withdrawn")
SERVICES = ("directory",)
ATOMIC = True

MANIFEST = "manifest.json"


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    directory = Path(target.directory)
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = df.toArrow().to_pylist()
    batch = f"{query}-{batch_id}"
    entries = manifest(directory)
    if batch in entries:
        return
    name = f"{uuid4().hex}.rows"
    (directory / name).write_text(json.dumps(rows, default=str), encoding="utf-8")
    draft = directory / f"{uuid4().hex}.draft"
    draft.write_text(json.dumps(entries | {batch: name}), encoding="utf-8")
    draft.replace(directory / MANIFEST)


def manifest(directory: Path) -> dict[str, str]:
    """The file of each batch that counts."""
    try:
        entries: dict[str, str] = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:  # no batch yet
        return {}
    return entries


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    directory = Path(target.directory)
    files = [directory / name for name in manifest(directory).values()]
    return [row for file in files for row in json.loads(file.read_text(encoding="utf-8"))]
