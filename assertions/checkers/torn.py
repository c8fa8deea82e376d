"""Torn: a reader sees part of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from ..causes import hand_over_story
from ..glimpses import missing_in, newest, rows_of_batch
from ..model import Anomaly, Evidence, Glimpse
from ._records import SHOWN


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
    batches = {batch for glimpse in evidence.glimpses for batch in [newest(glimpse)] if batch is not None}
    rows = {batch: rows_of_batch(evidence, batch) for batch in batches}
    found = (_torn(glimpse, newest(glimpse), rows) for glimpse in evidence.glimpses)
    return [torn for torn in found if torn]


def _torn(glimpse: Glimpse, batch: int | None, rows: Mapping[int, pa.Table]) -> Torn | None:
    if glimpse.rows is None or batch is None:
        return None
    missing = missing_in(glimpse.rows, rows[batch]).num_rows
    if not 0 < missing < rows[batch].num_rows:
        return None
    return Torn(glimpse, batch, rows[batch].num_rows - missing, rows[batch].num_rows)
