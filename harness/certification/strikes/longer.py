"""A run of twelve batches: sinks that compare batch ids as text go wrong once these have two digits, some tidy up what
is older than ten batches, or forget that they know it, and some sum up in each tenth batch what there is by then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from itertools import cycle
from operator import and_
from typing import Literal

from ....faults import Fault, Plan, format_action
from ..kinds import Kind, kinds_in
from ..points import ALL_DONE, FAIL, KILL, Question, SweepPoint, crash_in, end_of, of_one_task, selector, under
from ..steps import shown
from ..trace import Step, executed
from ._declaration import Strike
from ._zombies import paused

BATCHES = 12
SETTINGS = {"batches": str(BATCHES)}
LATE = "late"
STRUCK = (9, 10, 11)
"""The last id of one digit, the first of two, and one that follows another of two."""
BEHIND_TEN = (10, 11)
"""Those that have ten batches before them."""
CUT_SHORT = 8
"""Next comes what sums up the first ten batches: at their end (id 9), or before the eleventh (id 10)."""

LONGEST = 60.0
"""Seconds: what a driver may take for its start and eleven batches."""

LONG_RUN = SweepPoint(
    Step("without a fault"), f"{BATCHES} batches", LATE, BATCHES - 1, Plan((), SETTINGS), alone=True, traced=True
)
"""What comes in some batches only shows there."""

EDGES: tuple[Literal["before"], Literal["after"]] = ("before", "after")


def longer(question: Question) -> Iterator[SweepPoint]:
    """The driver's death behind all of a batch, and before and behind the first change of each kind that every batch
    has, where the workload itself has no batch of two digits."""
    if question.batches is None or question.batches >= BATCHES:
        return
    if not any(ALL_DONE in executed(question.trace, batch).steps for batch in question.roles.values()):
        return
    yield LONG_RUN
    for batch in (CUT_SHORT, *STRUCK):
        yield _point(ALL_DONE, crash_in(batch), batch)
    yield _long_ago()
    turns = cycle(BEHIND_TEN)
    of_every_batch = reduce(and_, (kinds_in(question, batch) for batch in question.roles.values()))
    for kind in of_every_batch:
        for edge in EDGES:
            batch = next(turns)
            fault = Fault(kind.point(edge, batch, 1), (KILL,))
            yield _point(Step(kind.phase, edge), fault, batch, f"{kind.shown}, ")
    yield from _left_over(question, of_every_batch)


def _left_over(question: Question, kinds: Counter[Kind]) -> Iterator[SweepPoint]:
    """A batch is cut short before the first change of each kind and, where every batch has another, before the second;
    or a task is, where it has ended. What is left of that is no part of what a later batch sums up.

    Behind a change would be too early: a file that was just created is empty, and nothing says when it is full.
    Where the driver has not died, a later death of it would have the next one clean up: such a run has one fault.
    """
    for kind, times in kinds.items():
        for nth, ordinal in enumerate(("", "second ")[:times], start=1):
            fault = Fault(kind.point("before", CUT_SHORT, nth), (KILL,))
            yield _point(Step(kind.phase, "before"), fault, CUT_SHORT, f"{ordinal}{kind.shown}, ")
    seen = executed(question.trace, question.middle)
    ended = Step("task.run", "after", seen.writing)
    if ended in seen.steps:
        fault = Fault(of_one_task(selector(ended, CUT_SHORT), seen), (FAIL,))
        yield replace(_point(shown(ended, seen), fault, CUT_SHORT), alone=True)


def _long_ago() -> SweepPoint:
    """A driver that is taken for dead where it is handed the first batch, and goes on ten batches later."""
    here = Step("sink.write", "before")
    point = paused(here, selector(here, 0), LATE, 0, end_of(BEHIND_TEN[0]), f", {BATCHES} batches", longest=LONGEST)
    return under(SETTINGS, point)


def _point(here: Step, fault: Fault, batch: int, what: str = "") -> SweepPoint:
    detail = f"{what}{BATCHES} batches, id {batch}"
    return SweepPoint(here, format_action(*fault.actions), LATE, batch, Plan((fault,), SETTINGS), detail)


STRIKE = Strike(95, (longer,))
