"""Lost: a row of the ground truth that a reader never gets, though the job has committed all its input."""

from __future__ import annotations

import pyarrow as pa

from ..causes import committed_story, first_sentences, hand_over_story, written_by
from ..model import Anomaly, Evidence
from ..relations import has_key, locate, other_columns, select
from ..returned import since_it_went_on
from ._records import counts, distinct, first_records, place


def check(truth: pa.Table, observed: pa.Table, evidence: Evidence) -> Anomaly | None:
    """Each key of the ground truth (an id, mostly) is observed at least once. Until the input is committed, a missing
    row may yet come.

    A row that is there with another value is corrupted or stale, not lost.
    """
    if not evidence.settlement.input_committed:
        return None
    located = _located(truth, observed, evidence)
    if not located.num_rows:
        return None
    batches = distinct(located, "batch")
    missing = counts(located, batches)
    names = other_columns(truth, evidence.expectation)
    return Anomaly(
        kind="lost",
        count=located.num_rows,
        records=[
            place(row, evidence.expectation.key) | {"expected": {name: row[name] for name in names}}
            for row in first_records(located)
        ],
        batches=batches,
        partitions=distinct(located, "partition"),
        causes=first_sentences(batches, (_cause(batch, missing[batch], truth, evidence) for batch in batches)),
    )


def _located(truth: pa.Table, observed: pa.Table, evidence: Evidence) -> pa.Table:
    there = has_key("o", "t", evidence.expectation.identity)
    missing_rows = f"SELECT t.* FROM truth t WHERE NOT EXISTS (SELECT 1 FROM observed o WHERE {there})"
    return locate(select(missing_rows, truth=truth, observed=observed), evidence)


def _cause(batch: int, missing: int, truth: pa.Table, evidence: Evidence) -> str:
    def missing_then(read: pa.Table) -> int:
        return counts(_located(truth, read, evidence), [batch])[batch]

    story = hand_over_story(batch, evidence) + committed_story(batch, evidence)
    told = f"{story}; {missing} of its rows are missing (handed to {written_by(batch, evidence)})"
    return told + since_it_went_on(batch, evidence, missing, missing_then, "them were there until")
