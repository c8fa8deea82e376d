"""A batch of many rows: sinks that commit a batch in pieces, or write it in another way, do so only where it has more
rows than a piece.

It is run once without a fault, and traced: what it does is struck then (:mod:`..some_batches`). Some cannot take so
many at all (a request to Postgres has 65,535 parameters at most), and some lose rows of such a batch without any fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ....faults import Plan
from ..points import Gap, Question, Space, SweepPoint
from ..results import PointResult
from ..trace import Step
from ._declaration import Strike

ROWS = 30_000
"""Of the only batch, and a third of that for each of three tasks: so pieces of a hundred, five hundred, a thousand,
five thousand and ten thousand rows come out even. A last piece that is full has nothing behind it."""

LARGE = "large"

BATCH = 0

SETTINGS = {"batches": "1", "rows": str(ROWS)}

LARGE_RUN = SweepPoint(
    Step("without a fault"), f"{ROWS} rows in one batch", LARGE, BATCH, Plan((), SETTINGS), alone=True, traced=True
)


def larger(question: Question) -> Iterator[SweepPoint]:
    """The run without a fault, where there is more than one batch to be swept."""
    if question.batches is not None and BATCH in question.roles.values():
        yield LARGE_RUN


def tried_without_a_fault(space: Space, result: PointResult | None) -> Space:
    """The space as it is after that run. Of a sink that cannot take such a batch it has no point, and says so: it is
    the sink's own error."""
    if result is None or result.own_error is None:
        return space
    here = LARGE_RUN
    gap = Gap(here.at, here.action, here.role, f"{here.action} are more than it can take: {result.own_error}")
    kept = tuple(point for point in space.points if point != LARGE_RUN)
    return replace(space, points=kept, impossible=(*space.impossible, gap))


STRIKE = Strike(100, (larger,))
