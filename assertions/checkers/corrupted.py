"""Corrupted: a reader gets a known id with another value than was written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..causes import hand_over_story, told, written_by
from ..model import Anomaly, Evidence
from ..relations import SAME, locate, select
from ._records import distinct, first_records, place

COLUMNS = ("key", "value", "event_time", "payload")

DIFFERENT = f"""
SELECT t.id, {", ".join(f"t.{name} AS expected_{name}, o.{name} AS seen_{name}" for name in COLUMNS)},
  {", ".join(f"o.{name} IS DISTINCT FROM t.{name} AS differs_{name}" for name in COLUMNS)}
FROM truth t JOIN observed o ON o.id = t.id AND NOT ({SAME})
"""


def check(truth: pa.Table, observed: pa.Table, evidence: Evidence) -> Anomaly | None:
    """Each observed row with a committed id has the key, value, event_time and payload of that row.

    Times are compared in microseconds, numbers as doubles, text character by character.
    """
    found = select(DIFFERENT, truth=truth, observed=observed)
    if not found.num_rows:
        return None
    located = locate(found, evidence)
    batches = distinct(located, "batch")
    stories = told(batches, (_cause(batch, located, evidence) for batch in batches))
    return Anomaly(
        kind="corrupted",
        count=found.num_rows,
        records=[_record(row, evidence) for row in first_records(located)],
        batches=batches,
        partitions=distinct(located, "partition"),
        causes=stories or [_columns(located)],
    )


def _record(row: Mapping[str, Any], evidence: Evidence) -> dict[str, Any]:
    differing = [name for name in COLUMNS if row[f"differs_{name}"]]
    return place(row) | {
        "expected": {name: row[f"expected_{name}"] for name in differing},
        "seen": {name: row[f"seen_{name}"] for name in differing},
        "written_by": written_by(row["batch"], evidence),
    }


def _columns(located: pa.Table) -> str:
    """``other than written: value in 3 rows, payload in 1 rows``"""
    differing = {name: pc.sum(located[f"differs_{name}"]).as_py() for name in COLUMNS}
    named = ", ".join(f"{name} in {count} rows" for name, count in differing.items() if count)
    return f"other than written: {named}"


def _cause(batch: int, located: pa.Table, evidence: Evidence) -> str:
    columns = _columns(located.filter(pc.equal(located["batch"], batch)))
    return f"{hand_over_story(batch, evidence)}; {columns}; written by {written_by(batch, evidence)}"
