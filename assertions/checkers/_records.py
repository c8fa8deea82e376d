"""From located rows to an anomaly's fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

SHOWN = 10
"""So many records are kept with an anomaly."""

PLACE = ("batch", "partition", "offset")


def first_records(located: pa.Table) -> list[dict[str, Any]]:
    """The first few rows as mappings that JSON can hold."""
    return [{name: _plain(value) for name, value in row.items()} for row in located.slice(0, SHOWN).to_pylist()]


def place(row: Mapping[str, Any], key: Sequence[str]) -> dict[str, Any]:
    """The job's key, batch, partition and offset, where known."""
    return {name: row[name] for name in (*key, *PLACE) if row[name] is not None}


def named(key: Sequence[str]) -> str:
    """``id``, or ``customer, day``"""
    return ", ".join(key)


def distinct(located: pa.Table, column: str) -> list[int]:
    return sorted(value for value in pc.unique(located[column]).to_pylist() if value is not None)


def counts(located: pa.Table, batches: Sequence[int]) -> dict[int, int]:
    """Rows of each batch."""
    column = located["batch"]
    return {batch: pc.sum(pc.equal(column, batch)).as_py() or 0 for batch in batches}


def _plain(value: Any) -> Any:
    return value.isoformat(timespec="milliseconds") + "Z" if isinstance(value, datetime) else value
