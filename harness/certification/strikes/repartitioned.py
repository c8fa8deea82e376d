"""A batch that comes again in other tasks than it had: who tells rows by their task's number skips others' then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....faults import Action, Fault, Plan, format_action
from ..points import CRASH, KILL, Question, SweepPoint, selector
from ..roles import FIRST, MIDDLE
from ..steps import ONE_TASK_ENDED, shown
from ..trace import Step, executed
from ._declaration import Strike

DONE = Step(CRASH.phase, str(CRASH.edge))
MORE = 2
"""So many partitions more than the batch had tasks: what each task had, several have then."""


def repartitioned(question: Question) -> Iterator[SweepPoint]:
    """The middle batch: where one of its tasks has ended and no other has begun, before the sink's global commit, and
    where all of it is done; the first batch there, too: it is the first one of the next driver as well, whose tasks
    then have the very ids (TIDs) that the first driver's had. There are more tasks in the replay, never fewer: nothing
    of the first run's is left over."""
    if not question.reference_job:
        return
    if MIDDLE in question.roles:
        yield from _in_more_tasks(question, MIDDLE, (Step("sink.commit", "before"), DONE))
    if FIRST in question.roles:
        yield from _in_more_tasks(question, FIRST, (DONE,))


def _in_more_tasks(question: Question, role: str, steps: Sequence[Step]) -> Iterator[SweepPoint]:
    """In the batch of a role that has tasks, at those steps that it has; of the middle one also half-way."""
    batch = question.roles[role]
    seen = executed(question.trace, batch)
    if seen.writing is None:
        return
    again = Action("repartition", "source", {"to": max(seen.tasks.values()) + MORE})
    if role == MIDDLE and seen.tasks.get(seen.writing, 0) > 1:
        end, begin = (Step("task.run", edge, seen.writing) for edge in ("after", "before"))
        half = Fault(selector(end, batch, 1), (again, KILL), holds=(selector(begin, batch, 2),))
        yield _point(shown(Step(ONE_TASK_ENDED, stage=seen.writing), seen), half, role, batch)
    for step in steps:
        if step in seen.steps:
            yield _point(step, Fault(selector(step, batch), (again, KILL)), role, batch)


def _point(here: Step, fault: Fault, role: str, batch: int) -> SweepPoint:
    shown_as = " then ".join(map(format_action, fault.actions))
    return SweepPoint(here, shown_as, role, batch, Plan((fault,)), detail="replayed in more tasks", alone=True)


STRIKE = Strike(90, (repartitioned,))
