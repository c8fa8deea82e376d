"""Lost: a row of the ground truth that a reader never gets, though the job has committed all its input."""

from __future__ import annotations

import pyarrow as pa

from ..causes import committed_story, hand_over_story, told, written_by
from ..model import Anomaly, Evidence
from ..relations import locate, select
from ._records import counts, distinct, first_records, place

MISSING = "SELECT t.* FROM truth t WHERE t.id NOT IN (SELECT id FROM observed WHERE id IS NOT NULL)"


def check(truth: pa.Table, observed: pa.Table, evidence: Evidence) -> Anomaly | None:
    """Each committed id is observed at least once. Until the input is committed, a missing row may yet come.

    A row that is there with another value is corrupted, not lost.
    """
    if not evidence.settlement.input_committed:
        return None
    found = select(MISSING, truth=truth, observed=observed)
    if not found.num_rows:
        return None
    located = locate(found, evidence)
    batches = distinct(located, "batch")
    missing = counts(located, batches)
    return Anomaly(
        kind="lost",
        count=found.num_rows,
        records=[
            place(row) | {"expected": {name: row[name] for name in ("key", "value", "event_time", "payload")}}
            for row in first_records(located)
        ],
        batches=batches,
        partitions=distinct(located, "partition"),
        causes=told(batches, (_cause(batch, missing[batch], evidence) for batch in batches)),
    )


def _cause(batch: int, missing: int, evidence: Evidence) -> str:
    story = hand_over_story(batch, evidence) + committed_story(batch, evidence)
    return f"{story}; {missing} of its rows are missing (handed to {written_by(batch, evidence)})"
