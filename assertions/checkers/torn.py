"""Torn: a reader sees part of a batch."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from ..causes import hand_over_story
from ..glimpses import listed, newest, right_until
from ..model import Anomaly, Evidence, Glimpse
from ..sql import equal, select
from ._records import SHOWN

COUNTS = """
WITH written AS (SELECT * FROM after_it EXCEPT SELECT * FROM before_it),
replaced AS (SELECT * FROM before_it EXCEPT SELECT * FROM after_it),
touched AS (SELECT DISTINCT {key} FROM written),
each AS (
    SELECT
        EXISTS (SELECT 1 FROM seen s JOIN written w ON {seen_written} WHERE {of_key}) AS visible,
        NOT EXISTS (SELECT 1 FROM seen s WHERE {of_key})
            OR EXISTS (SELECT 1 FROM seen s JOIN replaced r ON {seen_replaced} WHERE {of_key}) AS missing
    FROM touched t
)
SELECT count(*) FILTER (visible) AS visible, count(*) FILTER (missing AND NOT visible) AS missing FROM each
"""


@dataclass(frozen=True)
class Torn:
    """``seen`` of the ``rows`` that a batch has were visible in a reading."""

    glimpse: Glimpse
    batch: int
    seen: int
    rows: int

    def __str__(self) -> str:
        return (
            f"a reader saw {self.seen} of {self.rows} rows of batch {self.batch} "
            f"(reading {self.glimpse.number}, {self.glimpse.at})"
        )


def check(truth: pa.Table, observed: pa.Table, evidence: Evidence) -> Anomaly | None:
    """Of the newest batch a reading shows all rows or none. Counts only for a sink that claims it (``ATOMIC``)."""
    found = torn_batches(evidence) if evidence.atomic else []
    if not found:
        return None
    return Anomaly(
        kind="torn",
        count=len(found),
        records=[
            {"batch": one.batch, "expected": one.rows, "seen": one.seen, "reading": one.glimpse.number}
            for one in found[:SHOWN]
        ],
        batches=sorted({one.batch for one in found}),
        causes=[f"{hand_over_story(one.batch, evidence)}; {one}" for one in found[:SHOWN]],
    )


def torn_batches(evidence: Evidence) -> list[Torn]:
    """Each reading that shows part of the newest batch, whatever the sink claims."""
    right: dict[int, pa.Table] = {}
    found = []
    for glimpse in evidence.glimpses:
        batch = newest(glimpse)
        if glimpse.rows is None or batch is None:
            continue
        for one in (batch - 1, batch):
            right.setdefault(one, right_until(evidence, one))
        counts = _counts(glimpse.rows, right[batch - 1], right[batch], evidence)
        if counts["visible"] and counts["missing"]:
            found.append(Torn(glimpse, batch, counts["visible"], counts["visible"] + counts["missing"]))
    return found


def _counts(seen: pa.Table, before: pa.Table, after: pa.Table, evidence: Evidence) -> dict[str, int]:
    """Of the rows that a batch wrote or replaced: how many are visible, and of how many there is nothing or what was
    there before. A version that is right neither before nor after the batch is none of the two: it is stale."""
    names, key = after.column_names, evidence.expectation.identity
    statement = COUNTS.format(
        key=listed(key),
        seen_written=equal("s", "w", names),
        seen_replaced=equal("s", "r", names),
        of_key=equal("s", "t", list(key)),
    )
    found: dict[str, int] = select(statement, seen=seen, before_it=before, after_it=after).to_pylist()[0]
    return found
