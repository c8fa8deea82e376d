"""A batch that comes again in other tasks than it had: who tells rows by their task's number skips others' then, or
leaves what no task of that number replaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....faults import Action, Fault, Plan, format_action
from ..kinds import last_effect
from ..points import ALL_DONE, KILL, Question, SweepPoint, selector
from ..roles import FIRST, MIDDLE
from ..steps import ONE_TASK_ENDED, shown
from ..trace import Step, executed
from ._declaration import Strike

WRITTEN = (Step("sink.commit", "before"), ALL_DONE)
"""Where the tasks of a batch have ended."""

FEWER = "replayed in fewer tasks"

MORE = 2
"""So many partitions more than the batch had tasks: what each task had, several have then."""


def repartitioned(question: Question) -> Iterator[SweepPoint]:
    """The middle batch: where one of its tasks has ended and no other has begun, before the sink's global commit, and
    where all of it is done; the first batch there, too: it is the first one of the next driver as well, whose tasks
    then have the very ids (TIDs) that the first driver's had."""
    if not question.reference_job:
        return
    yield from _in_more_tasks(question, MIDDLE, WRITTEN)
    if FIRST in question.roles:
        yield from _in_more_tasks(question, FIRST, (ALL_DONE,))


def in_fewer_tasks(question: Question) -> Iterator[SweepPoint]:
    """The middle batch: before its last request, else its last change of a file, before the sink's global commit, and
    where all of it is done. The batch before it is replayed in more tasks first, so that this one has them, too."""
    batch = question.middle
    seen = executed(question.trace, batch)
    if not question.reference_job or batch == 0 or seen.writing is None:
        return
    most = max(seen.tasks.values())
    first, again = Fault(selector(ALL_DONE, batch - 1), _replayed_in(most + MORE)), _replayed_in(1)
    if effect := last_effect(question, batch):
        here, detail = Step(effect.phase, "before"), f"{FEWER}, {effect.shown}"
        yield _point(here, MIDDLE, batch, detail, first, Fault(effect.point("before", batch), again))
    for step in WRITTEN:
        if step in seen.steps:
            yield _point(step, MIDDLE, batch, FEWER, first, Fault(selector(step, batch), again))


def _in_more_tasks(question: Question, role: str, steps: Sequence[Step]) -> Iterator[SweepPoint]:
    """In the batch of a role that has tasks, at those steps that it has; of the middle one also half-way."""
    batch = question.roles[role]
    seen = executed(question.trace, batch)
    if seen.writing is None:
        return
    again = _replayed_in(max(seen.tasks.values()) + MORE)
    if role == MIDDLE and seen.tasks.get(seen.writing, 0) > 1:
        end, begin = (Step("task.run", edge, seen.writing) for edge in ("after", "before"))
        half = Fault(selector(end, batch, 1), again, holds=(selector(begin, batch, 2),))
        yield _point(shown(Step(ONE_TASK_ENDED, stage=seen.writing), seen), role, batch, "replayed in more tasks", half)
    for step in steps:
        if step in seen.steps:
            yield _point(step, role, batch, "replayed in more tasks", Fault(selector(step, batch), again))


def _replayed_in(partitions: int) -> tuple[Action, ...]:
    return Action("repartition", "source", {"to": partitions}), KILL


def _point(here: Step, role: str, batch: int, detail: str, *faults: Fault) -> SweepPoint:
    shown_as = " then ".join(map(format_action, faults[-1].actions))
    return SweepPoint(here, shown_as, role, batch, Plan(faults), detail, alone=True)


STRIKE = Strike(90, (repartitioned, in_fewer_tasks))
