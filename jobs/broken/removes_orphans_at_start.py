"""A file under a new name for each batch, and a manifest that is linked into place, which only one writer can; when the
application starts, files that no manifest names are removed. Flaw: unreadable.

So a driver that dies between a file and its manifest leaves nothing behind, and of two drivers that write the same
batch one publishes its file and the other none.

Breaks when a driver that was taken for dead there, between its look at the manifests and its look at the directory,
goes on when its successor has published: it takes that for orphans, and removes files that manifests name. And where
one stands still between a file and its manifest: its successor removes the file. An age that a file must have before it
is removed (as of Iceberg's remove_orphan_files: three days) makes both unlikely.
"""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

GUARANTEE = "exactly-once"
TECHNIQUE = "atomic rename"
FLAW = ("unreadable",)
SERVICES = ("directory",)


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    directory = Path(target.directory)
    remove_orphans(directory)
    return stream.foreachBatch(partial(publish, directory))


def remove_orphans(directory: Path) -> None:
    named = {manifest.read_text() for manifest in manifests(directory)}
    orphans = [file for file in directory.glob("*.jsonl") if file.name not in named]
    for file in orphans:
        file.unlink()


def manifests(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.batch"))


def publish(directory: Path, rows: DataFrame, batch: int) -> None:
    manifest = directory / f"{batch:06}.batch"
    if manifest.exists():
        return
    name = uuid4().hex
    file, draft = directory / f"{name}.jsonl", directory / f"{name}.draft"
    file.write_text("".join(json.dumps(row.asDict(), default=str) + "\n" for row in rows.toLocalIterator()))
    draft.write_text(file.name)
    os.link(draft, manifest)
    draft.unlink()


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    directory = Path(target.directory)
    files = [directory / manifest.read_text() for manifest in manifests(directory)]
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]
