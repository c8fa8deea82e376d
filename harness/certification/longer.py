"""A run of twelve batches: sinks that compare batch ids as text go wrong once these have two digits."""

from __future__ import annotations

from collections.abc import Iterator

from ...faults import Plan, format_action
from .points import KILL, Question, SweepPoint, crash_in
from .trace import Step, executed

BATCHES = 12
LATE = "late"
STRUCK = (9, 10, 11)
"""The last id of one digit, the first of two, and one that follows another of two."""


def longer(question: Question) -> Iterator[SweepPoint]:
    """The driver's death behind all of a batch, where the workload itself has no batch of two digits."""
    if question.batches is None or question.batches >= BATCHES:
        return
    here = Step("batch.commit", "before")
    if not any(here in executed(question.trace, batch).steps for batch in question.roles.values()):
        return
    for batch in STRUCK:
        plan = Plan((crash_in(batch),))
        yield SweepPoint(
            here, format_action(KILL), LATE, batch, plan, detail=f"{BATCHES} batches, id {batch}", batches=BATCHES
        )
