"""Corrupted: a reader gets a known row with another value than was written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..causes import first_sentences, hand_over_story, written_by
from ..model import Anomaly, Evidence
from ..relations import has_key, listed, locate, other_columns, same, select
from ..sql import quoted
from ..truth import all_versions
from ._records import distinct, first_records, place


def check(truth: pa.Table, observed: pa.Table, evidence: Evidence) -> Anomaly | None:
    """Each observed row with a key of the ground truth (an id, mostly) has that row's values in the other columns.

    Times are compared in microseconds, numbers as doubles, text character by character. Under a sink's KEY a row that
    is any version of its key is not corrupted, but may be stale.
    """
    versions = all_versions(truth, evidence)
    found = select(_different(truth, evidence), versions=versions, observed=observed)
    if not found.num_rows:
        return None
    located = locate(found, evidence)
    batches = distinct(located, "batch")
    names = other_columns(truth, evidence.expectation)
    stories = first_sentences(batches, (_cause(batch, located, names, evidence) for batch in batches))
    return Anomaly(
        kind="corrupted",
        count=found.num_rows,
        records=[_record(row, names, evidence) for row in first_records(located)],
        batches=batches,
        partitions=distinct(located, "partition"),
        causes=stories or [_columns(located, names)],
    )


def _different(truth: pa.Table, evidence: Evidence) -> str:
    key, names = evidence.expectation.key, other_columns(truth, evidence.expectation)
    differs = [f"o.{quoted(name)} IS DISTINCT FROM t.{quoted(name)} AS {quoted(f'differs_{name}')}" for name in names]
    columns = [listed("t", key), listed("t", names, "expected_"), listed("o", names, "seen_"), *differs]
    return f"""
        SELECT {", ".join(filter(None, columns))}
        FROM versions t JOIN observed o ON {has_key("o", "t", key)} AND NOT ({same("o", "t", truth)})
    """


def _record(row: Mapping[str, Any], names: Sequence[str], evidence: Evidence) -> dict[str, Any]:
    differing = [name for name in names if row[f"differs_{name}"]]
    return place(row, evidence.expectation.key) | {
        "expected": {name: row[f"expected_{name}"] for name in differing},
        "seen": {name: row[f"seen_{name}"] for name in differing},
        "written_by": written_by(row["batch"], evidence),
    }


def _columns(located: pa.Table, names: Sequence[str]) -> str:
    """``other than written: value in 3 rows, payload in 1 rows``"""
    differing = {name: pc.sum(located[f"differs_{name}"]).as_py() for name in names}
    listing = ", ".join(f"{name} in {count} rows" for name, count in differing.items() if count)
    return f"other than written: {listing}"


def _cause(batch: int, located: pa.Table, names: Sequence[str], evidence: Evidence) -> str:
    columns = _columns(located.filter(pc.equal(located["batch"], batch)), names)
    return f"{hand_over_story(batch, evidence)}; {columns}; written by {written_by(batch, evidence)}"
