"""Stale: under a sink's KEY, a reader gets an older version of a key than the one that it must get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ..causes import first_sentences, hand_over_story, written_by
from ..model import Anomaly, Evidence
from ..relations import has_key, listed, locate, other_columns, same, select
from ..truth import all_versions, right_versions
from ._records import counts, distinct, first_records, place


def check(truth: pa.Table, observed: pa.Table, evidence: Evidence) -> Anomaly | None:
    """Of each key that a sink declares (KEY) its last arrival is observed, or one with the greatest ORDER.

    Found here: rows that came from the input, but that another row of their key must have replaced. Until the input is
    committed, that may yet happen.
    """
    if not evidence.expectation.latest or not evidence.settlement.input_committed:
        return None
    all_of_them, right = all_versions(truth, evidence), right_versions(truth, evidence)
    found = select(_older(truth, evidence), truth=truth, versions=all_of_them, right_rows=right, observed=observed)
    if not found.num_rows:
        return None
    located = locate(found, evidence)
    batches = distinct(located, "batch")
    rows = counts(located, batches)
    return Anomaly(
        kind="stale",
        count=found.num_rows,
        records=[_record(row, other_columns(truth, evidence.expectation), evidence) for row in first_records(located)],
        batches=batches,
        partitions=distinct(located, "partition"),
        causes=first_sentences(batches, (_cause(batch, rows[batch], evidence) for batch in batches))
        or [_rule(evidence)],
    )


def _older(truth: pa.Table, evidence: Evidence) -> str:
    expectation = evidence.expectation
    names = other_columns(truth, expectation)
    columns = [listed("v", expectation.key), listed("o", names, "seen_"), listed("t", truth.column_names, "expected_")]
    return f"""
        SELECT {", ".join(filter(None, columns))}
        FROM observed o
        JOIN versions v ON {has_key("o", "v", expectation.key)} AND {same("o", "v", truth)}
        JOIN truth t ON {has_key("o", "t", expectation.identity)}
        WHERE NOT EXISTS (SELECT 1 FROM right_rows r WHERE {same("o", "r", truth)})
    """


def _record(row: Mapping[str, Any], names: Sequence[str], evidence: Evidence) -> dict[str, Any]:
    key = evidence.expectation.key
    return place(row, key) | {
        "expected": {name: row[f"expected_{name}"] for name in (*key, *names)},
        "seen": {name: row[f"seen_{name}"] for name in names},
        "written_by": written_by(row["batch"], evidence),
    }


def _cause(batch: int, rows: int, evidence: Evidence) -> str:
    story = hand_over_story(batch, evidence)
    return f"{story}; {rows} of its rows stand where {_rule(evidence)} (written by {written_by(batch, evidence)})"


def _rule(evidence: Evidence) -> str:
    order, key = evidence.expectation.order, ", ".join(evidence.expectation.identity)
    which = f"has a greater {order}" if order else "arrived later"
    return f"another row of their {key} {which}"
