"""Stale: under a sink's KEY, a reader gets an older version of a key than the one that it must get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..causes import first_sentences, hand_over_story, written_by
from ..glimpses import newest, right_until
from ..model import Anomaly, Evidence
from ..relations import has_key, listed, locate, other_columns, same, select
from ..truth import all_versions, right_versions
from ._records import counts, distinct, first_records, place


def check(truth: pa.Table, observed: pa.Table, evidence: Evidence) -> Anomaly | None:
    """Of each key that a sink declares (KEY) its last arrival is observed, or one with the greatest ORDER.

    Found here: rows that came from the input, but that another row of their key must have replaced. At the end that is
    any of them, once the input is committed. While the job is under way it is one that was right after no batch: a
    reader may get a version late, but not one that its own batch must have replaced.
    """
    if not evidence.expectation.latest:
        return None
    found, where = _at_the_end(truth, observed, evidence), "stand"
    if not found.num_rows:
        found, where = _met(truth, evidence), "were met by a reader while the job was under way"
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
        causes=first_sentences(
            batches, (_cause(batch, f"{rows[batch]} of its rows {where}", evidence) for batch in batches)
        )
        or [_rule(evidence)],
    )


def _at_the_end(truth: pa.Table, observed: pa.Table, evidence: Evidence) -> pa.Table:
    versions, right = all_versions(truth, evidence), right_versions(truth, evidence)
    if not evidence.settlement.input_committed:
        observed = observed.slice(0, 0)
    return select(_older(truth, evidence), truth=truth, versions=versions, right_rows=right, observed=observed)


def _met(truth: pa.Table, evidence: Evidence) -> pa.Table:
    """Versions that readings showed after their own batch was committed, and that were right after no batch."""
    versions = all_versions(truth, evidence)
    met = [one for one in evidence.glimpses if one.rows is not None and one.committed is not None]
    if not met or "batch" not in versions.column_names:
        return truth.slice(0, 0)
    last = max(newest(one) or 0 for one in met)
    right = pa.concat_tables(right_until(evidence, batch) for batch in range(last + 1))
    statement, found = _older(truth, evidence), list[pa.Table]()
    for one in met:
        ended = versions.filter(pc.fill_null(pc.less_equal(versions["batch"], one.committed), False))
        found.append(select(statement, truth=truth, versions=ended, right_rows=right, observed=one.rows))
    return select("SELECT DISTINCT * FROM found", found=pa.concat_tables(found))


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


def _cause(batch: int, what: str, evidence: Evidence) -> str:
    story = hand_over_story(batch, evidence)
    return f"{story}; {what} where {_rule(evidence)} (written by {written_by(batch, evidence)})"


def _rule(evidence: Evidence) -> str:
    order, key = evidence.expectation.order, ", ".join(evidence.expectation.identity)
    which = f"has a greater {order}" if order else "arrived later"
    return f"another row of their {key} {which}"
