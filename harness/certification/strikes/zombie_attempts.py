"""A task whose executor stands still until it is taken for lost, and goes on beside the task's next attempt, or behind
its batch: whoever tells attempts apart by nothing has the rows of both.

The driver lives, so that no fence keeps the first attempt out that only tells drivers apart. Such a trial has executors
of its own, whatever master the others have; a job of a user's may have chosen its master in its code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import compress

from ....faults import Action, Fault, Plan, Point, format_action
from ....faults.settings import CLUSTER, MASTER
from ..effects import Effect, Family
from ..kinds import FAMILIES, in_tasks
from ..points import Gap, Question, SweepPoint, end_of
from ..roles import MIDDLE
from ..trace import Step, executed, reports
from ._declaration import Strike
from ._zombies import given_up_after, small_batch

LONGEST = 40.0
"""Seconds for which it stands still at most: the driver gives an executor up after six without a heartbeat."""
BESIDE = 5.0
"""Seconds for which the next attempt is kept at its end, so that what the first one still does comes before it."""
LATER = 5.0
"""Seconds for which the next batch waits, so that it comes behind that."""

SETTINGS = {MASTER: CLUSTER, **given_up_after(6)}

PAUSED = Action("pause", "executor")
DETAIL = "taken for lost"


def zombie_attempts(question: Question) -> Iterator[SweepPoint | Gap]:
    """A task of the second batch or the first: before its middle request, and before its last one, until its next
    attempt is at its end; and before its last one until the batch has ended. Of files the same."""
    small = small_batch(question)
    for family in FAMILIES if question.reference_job else ():
        if not _of_a_task(question, family, question.middle):
            continue
        if small is None:
            here = Step(family.phase, "before")
            yield Gap(here, format_action(PAUSED), MIDDLE, "neither of the first two batches is swept and followed")
            continue
        yield from _points(question, family, *small)


def _points(question: Question, family: Family, role: str, batch: int) -> Iterator[SweepPoint]:
    stage, done = executed(question.trace, batch).writing, _of_a_task(question, family, batch)
    if stage is None or not done:
        return
    ended = Point("task.run", "after", {"batch": batch, "stage": stage, "attempt": 1})
    kept = Fault(ended, (Action("delay", None, {"for": BESIDE}),))
    waits = Fault(Point("sink.write", "before", {"batch": batch + 1}), (Action("delay", None, {"for": LATER}),))
    middle, last = done[len(done) // 2], done[-1]
    for effect in [middle, last] if middle is not last else [last]:
        yield _point(effect, role, batch, stage, ended, ", until its next attempt has ended", kept)
    yield _point(last, role, batch, stage, end_of(batch), ", until the batch has ended", waits)


def _of_a_task(question: Question, family: Family, batch: int) -> Sequence[Effect]:
    """What one connection or thread was seen to do while tasks of the stage that writes ran: the one that did most,
    numbered among what all of them did. Of kinds that differ from run to run the first."""
    stage = executed(question.trace, batch).writing
    if stage is None or not question.can_have(family.phase):
        return ()
    reported = family.done(reports(question.trace, batch))
    own = compress(reported, in_tasks(question, batch, stage, (family.phase,)))
    found = family.read(list(own))
    threads = Counter((one.process, one.thread) for one in found if one.steady)
    busiest = threads.most_common(1)[0][0] if threads else None
    return [one for one in found if (one.steady and (one.process, one.thread) == busiest) or _is_first(one)]


def _is_first(effect: Effect) -> bool:
    return not effect.steady and effect.nth == 1


def _point(effect: Effect, role: str, batch: int, stage: int, until: Point, detail: str, then: Fault) -> SweepPoint:
    at = Point(effect.phase, "before", {**effect.where, "batch": batch, "stage": stage, "attempt": 0}, effect.nth)
    stands = Action(PAUSED.name, PAUSED.target, {"longest": LONGEST}, until=until)
    plan = Plan((Fault(at, (stands,)), then), SETTINGS)
    return SweepPoint(
        Step(effect.phase, "before"), format_action(PAUSED), role, batch, plan, f"{DETAIL}{detail}, {effect.shown}",
        alone=True, exclusive=True, seen_once=True, way=DETAIL,
    )  # fmt: skip


STRIKE = Strike(72, (zombie_attempts,))
