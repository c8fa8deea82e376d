"""Phantom: a reader gets a row that the ground truth does not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..causes import written_by
from ..model import Anomaly, Evidence
from ..relations import has_key, locate, other_columns, select
from ..truth import all_versions
from ._records import distinct, first_records, named, place


def check(truth: pa.Table, observed: pa.Table, evidence: Evidence) -> Anomaly | None:
    """Each observed row has the key (an id, mostly) of a row of the ground truth, or of an older version of it.

    Found here: rows of aborted transactions, ids that were never written, rows without an id that can be read.
    """
    known = has_key("o", "v", evidence.expectation.key)
    unknown = f"SELECT o.* FROM observed o WHERE NOT EXISTS (SELECT 1 FROM versions v WHERE {known})"
    found = select(unknown, versions=all_versions(truth, evidence), observed=observed)
    if not found.num_rows:
        return None
    located = locate(found, evidence)
    return Anomaly(
        kind="phantom",
        count=found.num_rows,
        records=[_record(row, other_columns(truth, evidence.expectation), evidence) for row in first_records(located)],
        batches=distinct(located, "batch"),
        partitions=distinct(located, "partition"),
        causes=_causes(located, evidence.expectation.key),
    )


def _record(row: Mapping[str, Any], names: Sequence[str], evidence: Evidence) -> dict[str, Any]:
    aborted = row["committed"] is not None
    return place(row, evidence.expectation.key) | {
        "seen": {name: row[name] for name in names},
        "aborted": aborted,
        "written_by": written_by(row["batch"], evidence),
    }


def _causes(located: pa.Table, key: Sequence[str]) -> list[str]:
    without_key = pc.sum(_without(located, key)).as_py()
    aborted = len(located) - located["committed"].null_count
    unknown = len(located) - without_key - aborted
    keys = located.filter(pc.is_valid(located["committed"])).group_by(list(key)).aggregate([]).num_rows
    sentences = {
        f"rows of {keys} records in aborted transactions of the input are there ({aborted} in all): "
        "the job or its reader reads uncommitted data": aborted,
        f"{unknown} rows have {_a(named(key))} that {_origin(key)}": unknown,
        f"{without_key} rows have no {named(key)} that can be read: they are no rows under test, or not decodable": (
            without_key
        ),
    }
    return [sentence for sentence, count in sentences.items() if count]


def _without(located: pa.Table, key: Sequence[str]) -> pa.ChunkedArray:
    """Which rows lack a part of the key."""
    missing = pc.is_null(located[key[0]])
    for name in key[1:]:
        missing = pc.or_(missing, pc.is_null(located[name]))
    return missing


def _origin(key: Sequence[str]) -> str:
    return "was never written to the source" if tuple(key) == ("id",) else "no input gives"


def _a(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
