"""A file under a new name for each batch, and a manifest that is linked into place, which only one writer can; before
every tenth batch the manifests so far are summed up in one. Flaw: duplicated.

So a driver that dies between a file and its manifest leaves a file that nobody reads, and of two drivers that write the
same batch one publishes its file and the other none.

Breaks when the driver has died there in any batch of the ten, and the next summary comes: it is made of the files that
the directory has, not of those that the manifests name. By then the crash is long over. (Spark's own file sink, which
sums up its log with every tenth batch, puts the log's entries together: CompactibleFileStreamLog.)
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
FLAW = ("duplicated",)
SERVICES = ("directory",)
ATOMIC = True

EVERY = 10


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    return stream.foreachBatch(partial(publish, Path(target.directory)))


def publish(directory: Path, rows: DataFrame, batch: int) -> None:
    if batch % EVERY == 0:
        link(directory / f"{batch:06}.summary", sorted(file.name for file in directory.glob("*.jsonl")))
    if (directory / f"{batch:06}.batch").exists():
        return
    file = directory / f"{uuid4().hex}.jsonl"
    file.write_text("".join(json.dumps(row.asDict(), default=str) + "\n" for row in rows.toLocalIterator()))
    link(directory / f"{batch:06}.batch", [file.name])


def link(manifest: Path, names: list[str]) -> None:
    """Writes the manifest unless it is there: the first one stays."""
    if manifest.exists():
        return
    draft = manifest.with_name(f"{uuid4().hex}.draft")
    draft.write_text(json.dumps(names))
    os.link(draft, manifest)
    draft.unlink()


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    """From the last summary, and the manifests since."""
    directory = Path(target.directory)
    last = sorted(directory.glob("*.summary"))[-1:]
    since = last[0].stem if last else ""
    manifests = [*last, *(manifest for manifest in directory.glob("*.batch") if manifest.stem >= since)]
    files = [directory / name for manifest in manifests for name in json.loads(manifest.read_text())]
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]
