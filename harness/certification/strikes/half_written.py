"""A fault in a half-written batch, and the driver's death later in that batch: what an attempt has left must not be
taken for what has become of the batch, nor for a part of it. Neither fault alone shows that: after the first one
nothing is known of the batch, and before the second one nothing was left over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from ....faults import Fault, Plan, format_action
from ..effects import Effect, Family
from ..kinds import FAMILIES, Kind, effects_of, in_tasks, kind_of, last_effect
from ..points import FAIL, KILL, Question, SweepPoint, crash_in, of_one_task, selector
from ..roles import MIDDLE
from ..steps import shown
from ..trace import Event, Step, executed, reports
from ._declaration import Strike

BEHIND = "then behind the batch"
AT_THE_END = "then before the last one"


def half_written(question: Question) -> Iterator[SweepPoint]:
    """In the middle batch, for its requests and its changes of files: behind the first one, and then before the last
    one or behind the batch; before the last one, and then behind the batch."""
    batch = question.middle
    for changes in filter(None, (effects_of(question, family, batch) for family in FAMILIES)):
        first, last = changes[0], changes[-1]
        if first.answered:
            here, fault = Step(first.phase, "after"), _dies_at(first, "after", batch)
            if first is not last:
                yield _before(last, batch, here, first.shown, fault)
            yield _behind(batch, here, first.shown, fault)
        yield _behind(batch, Step(last.phase, "before"), last.shown, _dies_at(last, "before", batch))


def left_by_a_task(question: Question) -> Iterator[SweepPoint]:
    """Where the first task has ended, if tasks write: the driver dies, or the task fails and is tried again. Then the
    driver dies before the last effect of the batch, if no task has that, or behind the batch."""
    batch = question.middle
    seen = executed(question.trace, batch)
    step = Step("task.run", "after", seen.writing)
    of_tasks = in_tasks(question, batch, seen.writing)
    if step not in seen.steps or not any(of_tasks):
        return
    here, at = shown(step, seen), of_one_task(selector(step, batch, 1), seen)
    for first in (Fault(at, (action,)) for action in (KILL, FAIL)):
        if (last := last_effect(question, batch)) and not of_tasks[-1]:
            yield _before(last, batch, here, "", first)
        yield _behind(batch, here, "", first)


def left_by_a_second_attempt(question: Question) -> Iterator[SweepPoint]:
    """The task that ends last fails there, and the driver dies behind the first effect of its next attempt: the
    replay's attempts are counted from 0 again, and what has a higher number is older, and was cut short."""
    batch = question.middle
    seen = executed(question.trace, batch)
    ended = Step("task.run", "after", seen.writing)
    if ended not in seen.steps:
        return
    failed = Fault(selector(ended, batch, seen.steps[ended]), (FAIL,))
    own = reports(question.trace, batch)
    runs = [at for at, event in enumerate(own) if (event["phase"], event.get("stage")) == ("task.run", seen.writing)]
    for family in filter(lambda family: question.can_have(family.phase), FAMILIES):
        for kind in _kinds(family, own[runs[0] : runs[-1]])[:1]:
            number = _kinds(family, own[: runs[-1]]).count(kind) + 1
            again = Fault(kind.point("after", batch, number), (KILL,))
            detail = f"then behind {kind.shown} of its next attempt"
            point = _point(batch, shown(ended, seen), [detail], failed, again)
            yield replace(point, seen_once=True)  # an attempt that finds the first one's rows may write none


def _kinds(family: Family, reported: Sequence[Event]) -> list[Kind]:
    return [kind_of(one) for one in family.read(family.done(reported))]


def _before(last: Effect, batch: int, here: Step, what: str, first: Fault) -> SweepPoint:
    """A successor that goes on where the first driver has stopped may not come there."""
    point = _point(batch, here, [what, AT_THE_END, last.shown], first, _dies_at(last, "before", batch))
    return replace(point, seen_once=True)


def _behind(batch: int, here: Step, what: str, first: Fault) -> SweepPoint:
    return _point(batch, here, [what, BEHIND], first, crash_in(batch))


def _dies_at(effect: Effect, edge: Literal["before", "after"], batch: int) -> Fault:
    return Fault(effect.point(edge, batch), (KILL,))


def _point(batch: int, here: Step, detail: Sequence[str], *faults: Fault) -> SweepPoint:
    (action,) = faults[0].actions
    details = ", ".join(filter(None, detail))
    return SweepPoint(here, format_action(action), MIDDLE, batch, Plan(faults), details)


STRIKE = Strike(36, (half_written, left_by_a_task, left_by_a_second_attempt))
