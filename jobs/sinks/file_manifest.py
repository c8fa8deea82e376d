"""Spark's own file sink, read by its manifest: exactly-once.

Tasks write Parquet files under names that are new each time. When all have ended, the driver adds the batch's entry to
the manifest: _spark_metadata/N lists the files that count, and appears by one rename. A batch that is handed over again
after that is skipped by its number; before it, its tasks write other files, and those of the first attempt are in no
entry. A reader that goes by the manifest, as Spark's own does, sees each batch whole and once; one that takes every
file of the directory does not (see file_bare: the same sink).

How the manifest is read (FileStreamSinkLog, CompactibleFileStreamLog): the entries are files named by the batch; every
so many batches (spark.sql.streaming.fileSink.log.compactInterval) one is called N.compact instead and repeats all
entries before it. What counts is the last of these, and what comes after it. Each has a line "v1", then a file in JSON
a line.

Windows: entries go by the batch's number alone, so a query with a new checkpoint must have a new directory: its batches
would be taken for known ones, and be lost. Spark makes no file and no entry durable by fsync on a local file system: it
holds for processes that die, not for power that fails. Entries before a compaction are deleted some time after it
(fileSink.log.cleanupDelay, ten minutes): a reader that takes longer finds them gone, and has to begin again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow.parquet as parquet
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

GUARANTEE = "exactly-once"
TECHNIQUE = "atomic rename"
SERVICES = ("directory",)
ATOMIC = True


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    # Spark's default is 10: this way the first compaction comes with batch 2.
    SparkSession.active().conf.set("spark.sql.streaming.fileSink.log.compactInterval", 3)
    return stream.format("parquet").option("path", f"{target.directory}/events")


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    manifest = Path(target.directory, "events", "_spark_metadata")
    files = [file for entry in counting(manifest) for file in added(entry)]
    return [row for file in files for row in parquet.ParquetFile(file).read().to_pylist()]


def counting(manifest: Path) -> list[Path]:
    """The last compacted entry and those behind it; other names are drafts and checksums."""
    if not manifest.is_dir():
        return []
    names = [entry.name.split(".") for entry in manifest.iterdir()]
    batches = {int(name[0]): name[1:] for name in names if name[0].isdigit() and name[1:] in ([], ["compact"])}
    start = max((batch for batch, suffix in batches.items() if suffix), default=0)
    return [manifest / ".".join([str(batch), *batches[batch]]) for batch in sorted(batches) if batch >= start]


def added(entry: Path) -> Iterator[str]:
    version, *lines = entry.read_text(encoding="utf-8").split("\n")
    if version != "v1":
        raise ValueError(f"{entry}: its version is {version!r}, and v1 is known")
    for line in map(json.loads, lines):
        if line["action"] == "add":
            yield unquote(urlparse(line["path"]).path)
