"""Duplicated: a reader gets a row of the ground truth more than once."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ..causes import (
    cut_anew,
    during_hand_over,
    epochs_story,
    first_sentences,
    hand_over_story,
    repeated_tasks,
    replayed_by,
    written_by,
)
from ..model import Anomaly, Evidence
from ..relations import has_key, listed, locate, same, select
from ..returned import since_it_went_on
from ..truth import right_versions
from ._records import distinct, first_records, place


def check(truth: pa.Table, observed: pa.Table, evidence: Evidence) -> Anomaly | None:
    """Each row of the ground truth is observed at most once; every further exact copy counts.

    Under a sink's KEY so do several right rows of one key.
    """
    located = _located(truth, observed, evidence)
    if not located.num_rows:
        return None
    batches = distinct(located, "batch")
    return Anomaly(
        kind="duplicated",
        count=pc.sum(located["surplus"]).as_py(),
        records=[
            place(row, evidence.expectation.key)
            | {"expected": 1, "seen": row["seen"], "written_by": written_by(row["batch"], evidence)}
            for row in first_records(located)
        ],
        batches=batches,
        partitions=distinct(located, "partition"),
        causes=first_sentences(batches, (_cause(batch, located, truth, evidence) for batch in batches)),
    )


def _located(truth: pa.Table, observed: pa.Table, evidence: Evidence) -> pa.Table:
    right = right_versions(truth, evidence)
    return locate(select(_surplus(truth, evidence), truth=truth, versions=right, observed=observed), evidence)


def _surplus_in(batch: int, located: pa.Table) -> int:
    return int(pc.sum(located.filter(pc.field("batch") == batch)["surplus"]).as_py() or 0)


def _surplus(truth: pa.Table, evidence: Evidence) -> str:
    identity = evidence.expectation.identity
    columns = listed("v", identity)
    return f"""
        WITH copies AS (
            SELECT {columns}, count(*) AS seen FROM versions v JOIN observed o ON {same("o", "v", truth)}
            GROUP BY {", ".join(str(number) for number in range(1, len(identity) + 1))} HAVING count(*) > 1
        )
        SELECT {listed("t", evidence.expectation.key)}, c.seen, c.seen - 1 AS surplus
        FROM copies c JOIN truth t ON {has_key("c", "t", identity)}
    """


def _cause(batch: int, located: pa.Table, truth: pa.Table, evidence: Evidence) -> str:
    def surplus(read: pa.Table) -> int:
        return _surplus_in(batch, _located(truth, read, evidence))

    now = _surplus_in(batch, located)
    return _story(batch, evidence) + since_it_went_on(batch, evidence, now, surplus, "these copies came once")


def _story(batch: int, evidence: Evidence) -> str:
    if epochs := epochs_story(batch, evidence):
        return epochs
    story = hand_over_story(batch, evidence)
    by, tasks = replayed_by(batch, evidence), repeated_tasks(batch, evidence)
    if by:
        return "; ".join([f"{story}: replay by {by}", *tasks])
    if tasks:
        return f"{story}, but {'; '.join(tasks)}: rows of several attempts are visible"
    if anew := cut_anew(batch, evidence):
        return f"{story}; {anew}"
    during = during_hand_over(batch, evidence)
    return f"{story}{during}, and no attempt of a task was seen twice: the sink itself wrote these rows more than once"
