"""Reading a Structured Streaming checkpoint: its offset log and its commit log.

Each file is ``v1``, then JSON lines; see OffsetSeqLog and CommitLog in org.apache.spark.sql.execution.streaming.
"""

from __future__ import annotations

import hashlib
import json
import shutil
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


def planned(checkpoint: Path) -> list[int]:
    """The batches in the offset log, in order."""
    return _numbered(checkpoint / "offsets")


def committed(checkpoint: Path) -> list[int]:
    """The batches in the commit log, in order."""
    return _numbered(checkpoint / "commits")


def offsets_digest(checkpoint: Path, batch: int) -> str | None:
    """sha256 of offsets/N as it stands, or None where there is none."""
    try:
        return hashlib.sha256((checkpoint / "offsets" / str(batch)).read_bytes()).hexdigest()
    except OSError:
        return None


def end_offsets(checkpoint: Path, batch: int) -> dict[int, int]:
    """The end offset of each partition of the job's topic in offsets/N; none of a job that reads it in its own way."""
    lines = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()
    sources = [json.loads(line) for line in lines[2:] if line not in ("", "-")]
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
    line = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()[1]
    found: dict[str, Any] = json.loads(line or "{}")
    return found


def copy(checkpoint: Path, destination: Path) -> None:
    """Keep each offsets and commits file for the run directory."""
    for log in ("offsets", "commits"):
        if (checkpoint / log).is_dir():
            shutil.copytree(checkpoint / log, destination / log, ignore=shutil.ignore_patterns(".*", "*.tmp"))


def _numbered(directory: Path) -> list[int]:
    if not directory.is_dir():
        return []
    return sorted(int(path.name) for path in directory.iterdir() if path.name.isdigit())
