"""A sink that sends requests from several threads: one of them is lost, and one of another thread is late. It arrives
while the batch is written again: by the sink's own retry, or by the query, which is started again in the process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ....faults import Action, Fault, Plan
from ..effects import Effect
from ..kinds import effects_of
from ..limits import patience
from ..points import DROP, Question, SweepPoint, evenly
from ..requests import REQUESTS
from ..roles import MIDDLE
from ..trace import PYTHON_DRIVER, Step, processes_of, reports
from ._declaration import Strike
from .in_place import AGAIN

KINDS = 4
"""Kinds of requests that are lost and kept back."""
AHEAD = 2.0
"""Seconds for which what is done again waits, so that the late one is ahead of its end."""
LATE = "of another thread late"


def threads(question: Question) -> Iterator[SweepPoint]:
    """In the middle batch, by each kind (some of them, where there are many). The late one goes on when one more is
    asked for than a run has of them: that is in the midst of what is done again, when what was there has been removed,
    and not all is there yet. How threads take turns differs from run to run, so a point may not be reached."""
    batch = question.middle
    own = [one for one in reports(question.trace, batch) if one.get("role") == PYTHON_DRIVER]
    if not question.reference_job or len({one.get("thread") for one in own}) < 2:
        return
    drivers = processes_of(own, (PYTHON_DRIVER,))
    asked = [one for one in effects_of(question, REQUESTS, batch) if one.process in drivers and one.steady]
    for lost, late, most in evenly([*_lost_and_late(asked)], KINDS):
        yield _point(question, lost, late, most, batch)


def _point(question: Question, lost: Effect, late: Effect, most: int, batch: int) -> SweepPoint:
    """``most`` is how many there are of the kind in a run: the count of what ends a delay begins with the delay."""
    at = late.point("before", batch)
    delay = Action("delay", None, {"longest": patience(question)}, until=replace(at, nth=most + 1 - late.nth))
    kept = Fault(replace(at, where={**at.where, "run": 1}), (delay,))
    waits = Fault(replace(at, nth=most + 1), (Action("delay", None, {"for": AHEAD}),))
    plan = Plan((Fault(lost.point("before", batch), (DROP,)), kept, waits), AGAIN)
    detail = f"{lost.shown} lost, {late.shown} {LATE}"
    return SweepPoint(
        Step(late.phase, "before"), delay.name, MIDDLE, batch, plan, detail,
        alone=True, seen_once=True, way=f"{LATE} {late.selectors}",
    )  # fmt: skip


def _lost_and_late(asked: Sequence[Effect]) -> Iterator[tuple[Effect, Effect, int]]:
    """Of each kind that is sent by several connections at once: the first request; the first that comes behind as many
    as there are connections at once, as whoever waits for one after the other would wait for one of these; and the
    number of the last one."""
    spans: dict[str, tuple[int, int]] = {}
    kinds: dict[object, list[Effect]] = {}
    for at, one in enumerate(asked):
        spans[one.thread] = spans.get(one.thread, (at, at))[0], at
        kinds.setdefault(one.selectors, []).append(one)
    for alike in kinds.values():
        own = [spans[thread] for thread in {one.thread for one in alike}]
        at_once = max(sum(begin <= at <= end for begin, end in own) for at, _ in own)
        if at_once > 1:
            yield alike[0], alike[min(at_once, len(alike) - 1)], alike[-1].nth


STRIKE = Strike(86, (threads,))
