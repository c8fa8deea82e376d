"""A run of twelve batches: sinks that compare batch ids as text go wrong once these have two digits, and some tidy up
what is older than ten batches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import Literal

from ....faults import Fault, Plan, format_action
from ..kinds import Kind, kinds_in
from ..points import KILL, Question, SweepPoint, crash_in
from ..trace import Step, executed
from ._declaration import Strike

BATCHES = 12
SETTINGS = {"batches": str(BATCHES)}
LATE = "late"
STRUCK = (9, 10, 11)
"""The last id of one digit, the first of two, and one that follows another of two."""
BEHIND_TEN = (10, 11)
"""Those that have ten batches before them."""


EDGES: tuple[Literal["before"], Literal["after"]] = ("before", "after")


def longer(question: Question) -> Iterator[SweepPoint]:
    """The driver's death behind all of a batch, and before and behind the first change of each kind that every batch
    has, where the workload itself has no batch of two digits."""
    if question.batches is None or question.batches >= BATCHES:
        return
    here = Step("batch.commit", "before")
    if not any(here in executed(question.trace, batch).steps for batch in question.roles.values()):
        return
    for batch in STRUCK:
        yield _point(here, crash_in(batch), batch)
    turns = cycle(BEHIND_TEN)
    for kind in _of_every_batch(question):
        for edge in EDGES:
            batch = next(turns)
            fault = Fault(kind.point(edge, batch, 1), (KILL,))
            yield _point(Step(kind.phase, edge), fault, batch, f"{kind.shown}, ")


def _of_every_batch(question: Question) -> list[Kind]:
    first, *others = [kinds_in(question, batch) for batch in question.roles.values()]
    return [kind for kind in first if all(kind in one for one in others)]


def _point(here: Step, fault: Fault, batch: int, shown: str = "") -> SweepPoint:
    detail = f"{shown}{BATCHES} batches, id {batch}"
    return SweepPoint(here, format_action(KILL), LATE, batch, Plan((fault,), SETTINGS), detail)


STRIKE = Strike(95, (longer,))
