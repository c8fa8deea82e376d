"""A batch of many rows: sinks that commit a batch in pieces do so only where it has more rows than a piece.

Some cannot take so many at all (a request to Postgres has 65,535 parameters at most), and some lose rows of such a
batch without any fault. So before its points it is run once without one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ....faults import Fault, Plan, format_action
from ..kinds import FAMILIES, Kind, kinds_in, kinds_of
from ..points import KILL, Gap, Question, Space, SweepPoint, crash_in
from ..results import PointResult
from ..trace import Step
from ._declaration import Strike
from .half_written import BEHIND

ROWS = 16_000
"""Of the only batch: more than ten thousand, and more than five thousand in each of three tasks."""

LARGE = "large"

BATCH = 0

SETTINGS = {"batches": "1", "rows": str(ROWS)}


def larger(question: Question) -> Iterator[SweepPoint]:
    """The driver's death behind the first request of each kind, and behind the first change of each kind in each
    directory: the first piece is done then, and others follow. Behind that with which a piece ends, its successor also
    dies behind the batch: what it has noted of the whole must be what it found and what it added."""
    if question.batches is None or BATCH not in question.roles.values():
        return
    for kind in kinds_in(question, BATCH):
        yield _behind_the_first(kind)
    for family in FAMILIES:
        for kind in kinds_of(question, family, BATCH)[-1:]:
            yield _behind_the_first(kind, crash_in(BATCH))


def _behind_the_first(kind: Kind, *more: Fault) -> SweepPoint:
    plan = Plan((Fault(kind.point("after", BATCH, 1), (KILL,)), *more), SETTINGS)
    detail = ", ".join([kind.shown, *([BEHIND] if more else []), f"{ROWS} rows"])
    return SweepPoint(Step(kind.phase, "after"), format_action(KILL), LARGE, BATCH, plan, detail, alone=True)


WITHOUT_A_FAULT = SweepPoint(
    Step("without a fault"), f"{ROWS} rows in one batch", LARGE, BATCH, Plan((), SETTINGS), alone=True
)


def has_larger(space: Space) -> bool:
    """Whether it has points of a large batch."""
    return any(point.role == LARGE for point in space.points)


def tried_without_a_fault(space: Space, result: PointResult | None) -> Space:
    """The space with the run of a large batch without a fault. Of a sink that cannot take such a batch it has no point
    of one, and says so: a fault would be blamed for what is the sink's own error."""
    if result is None or result.own_error is None:
        return replace(space, points=(WITHOUT_A_FAULT, *space.points))
    here = WITHOUT_A_FAULT
    gap = Gap(here.at, here.action, here.role, f"{here.action} are more than it can take: {result.own_error}")
    kept = tuple(point for point in space.points if point.role != LARGE)
    return replace(space, points=kept, impossible=(*space.impossible, gap))


STRIKE = Strike(100, (larger,))
