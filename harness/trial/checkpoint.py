"""Reading a Structured Streaming checkpoint: its offset log and its commit log.

Each file is ``v1``, then JSON lines; see OffsetSeqLog and CommitLog in org.apache.spark.sql.execution.streaming.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OF_THE_ENGINE = ("metadata", "offsets", "commits", "sources", "state")
"""What a query itself writes to its checkpoint."""

FILES_OF_THE_ENGINE = [
    "checkpoint",
    *(f"checkpoint/{name}{rest}" for name in OF_THE_ENGINE for rest in ("", "/*")),
    "checkpoint/.metadata*",
]
"""Patterns of all that, as changes of files are reported."""

VERSIONS = (".delta", ".snapshot", ".zip", ".changelog")
"""Files of a version of a store: of HDFSBackedStateStoreProvider, and of RocksDBStateStoreProvider."""


@dataclass
class Place:
    """Where the next driver finds the query's checkpoint."""

    directory: Path


def planned(checkpoint: Path) -> list[int]:
    """The batches in the offset log, in order."""
    return _numbered(checkpoint / "offsets")


def committed(checkpoint: Path) -> list[int]:
    """The batches in the commit log, in order."""
    return _numbered(checkpoint / "commits")


def newest(checkpoint: Path, part: str) -> list[Path]:
    """The newest file of offsets or commits, the newest version in each store of the state, or the metadata."""
    if part == "metadata":
        return [path for path in [checkpoint / part] if path.is_file()]
    if part == "state":
        return [path for files in _stores(checkpoint).values() for path in files if _version(path) == _last(files)]
    return [checkpoint / part / str(batch) for batch in _numbered(checkpoint / part)[-1:]]


def newer(checkpoint: Path, part: str, batch: int) -> list[Path]:
    """The files of offsets, commits or state that came after ``batch`` was committed. A store's version N + 1 is that
    of batch N."""
    if part == "state":
        return [path for files in _stores(checkpoint).values() for path in files if _version(path) > batch + 1]
    return [checkpoint / part / str(number) for number in _numbered(checkpoint / part) if number > batch]


def offsets_digest(checkpoint: Path, batch: int) -> str | None:
    """sha256 of offsets/N as it stands, or None where there is none."""
    try:
        return hashlib.sha256((checkpoint / "offsets" / str(batch)).read_bytes()).hexdigest()
    except OSError:
        return None


def end_offsets(checkpoint: Path, batch: int) -> dict[int, int]:
    """The end offset of each partition of the job's topic in offsets/N; none of a job that reads it in its own way."""
    sources = [json.loads(line) for line in _offset_log(checkpoint, batch)[2:] if line not in ("", "-")]
    topics = [topic for source in sources if isinstance(source, dict) for topic in source.values()]
    return {int(partition): int(end) for topic in topics if isinstance(topic, dict) for partition, end in topic.items()}


def batches(checkpoint: Path) -> dict[int, dict[int, tuple[int, int]]]:
    """For each planned batch the first and the end offset of each partition.

    A continuous query that starts again may log less for an epoch than was logged for the one before: that epoch is
    empty.
    """
    result: dict[int, dict[int, tuple[int, int]]] = {}
    before: dict[int, int] = {}
    for batch in planned(checkpoint):
        ends = {each: max(end, before.get(each, 0)) for each, end in end_offsets(checkpoint, batch).items()}
        result[batch] = {partition: (before.get(partition, 0), end) for partition, end in ends.items()}
        before = ends
    return result


def watermarks(checkpoint: Path) -> dict[int, int]:
    """The watermark of each planned batch, in milliseconds since 1970 (OffsetSeqMetadata.batchWatermarkMs)."""
    return {batch: _metadata(checkpoint, batch).get("batchWatermarkMs", 0) for batch in planned(checkpoint)}


def _metadata(checkpoint: Path, batch: int) -> dict[str, Any]:
    """The second line of offsets/N; a continuous query leaves it empty."""
    found: dict[str, Any] = json.loads(_offset_log(checkpoint, batch)[1] or "{}")
    return found


def before(checkpoint: Path) -> Path:
    """Where files of the offset log are kept as they were before a fault changed them."""
    return checkpoint.with_name(f"{checkpoint.name}-before")


def _offset_log(checkpoint: Path, batch: int) -> list[str]:
    """The lines of offsets/N; where a fault has damaged or removed it, as it was before."""
    kept = before(checkpoint) / "offsets" / str(batch)
    try:
        return _whole(checkpoint / "offsets" / str(batch))
    except (OSError, ValueError):
        if not kept.exists():
            raise
        return _whole(kept)


def _whole(file: Path) -> list[str]:
    """The lines of a file of the offset log. Raises ValueError for one that is torn."""
    lines = file.read_text(encoding="utf-8").splitlines()
    if len(lines) < 2:
        raise ValueError(f"{file} has {len(lines)} lines")
    for line in lines[1:]:
        if line not in ("", "-"):
            json.loads(line)
    return lines


def copy(checkpoint: Path, destination: Path) -> None:
    """Keep each offsets and commits file for the run directory."""
    for log in ("offsets", "commits"):
        if (checkpoint / log).is_dir():
            shutil.copytree(checkpoint / log, destination / log, ignore=shutil.ignore_patterns(".*", "*.tmp"))


def _stores(checkpoint: Path) -> dict[Path, list[Path]]:
    """The versions of each store of the state: ``state/OPERATOR/PARTITION/3.delta``, or ``7_3d1f.zip``, maybe in a
    folder for each of several stores."""
    found: dict[Path, list[Path]] = {}
    for path in sorted((checkpoint / "state").rglob("[0-9]*.*")):
        if path.is_file() and path.suffix in VERSIONS:
            found.setdefault(path.parent, []).append(path)
    return found


def _version(path: Path) -> int:
    return int(path.name.partition(".")[0].partition("_")[0])


def _last(files: Sequence[Path]) -> int:
    return max(map(_version, files))


def _numbered(directory: Path) -> list[int]:
    if not directory.is_dir():
        return []
    return sorted(int(path.name) for path in directory.iterdir() if path.name.isdigit())
