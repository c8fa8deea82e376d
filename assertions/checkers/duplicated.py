"""Duplicated: a reader gets a row of the ground truth more than once."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ..causes import befallen, hand_over_story, repeated_tasks, replayed_by, told, written_by
from ..model import Anomaly, Evidence
from ..relations import SAME, locate, select
from ._records import distinct, first_records, place

SURPLUS = f"""
SELECT t.id, count(*) AS seen, count(*) - 1 AS surplus
FROM truth t JOIN observed o ON o.id = t.id AND {SAME}
GROUP BY t.id HAVING count(*) > 1
"""


def check(truth: pa.Table, observed: pa.Table, evidence: Evidence) -> Anomaly | None:
    """Each committed row is observed at most once; every further exact copy counts."""
    found = select(SURPLUS, truth=truth, observed=observed)
    if not found.num_rows:
        return None
    located = locate(found, evidence)
    batches = distinct(located, "batch")
    return Anomaly(
        kind="duplicated",
        count=pc.sum(found["surplus"]).as_py(),
        records=[
            place(row) | {"expected": 1, "seen": row["seen"], "written_by": written_by(row["batch"], evidence)}
            for row in first_records(located)
        ],
        batches=batches,
        partitions=distinct(located, "partition"),
        causes=told(batches, (_cause(batch, evidence) for batch in batches)),
    )


def _cause(batch: int, evidence: Evidence) -> str:
    story = hand_over_story(batch, evidence)
    by, tasks = replayed_by(batch, evidence), repeated_tasks(batch, evidence)
    if by:
        return "; ".join([f"{story}: replay by {by}", *tasks])
    if tasks:
        return f"{story}, but {'; '.join(tasks)}: rows of several attempts are visible"
    fell = befallen(batch, evidence)
    return f"{story}{fell}, and no attempt of a task was seen twice: the sink itself wrote these rows more than once"
