"""A sink that asks by several threads at once: what one of them asks for is lost, and another one is late. It arrives
while the batch is written again: by the sink's own retry, or by the query, which is started again in the process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from ....faults import Action, Fault, Plan, Point
from ..effects import Effect
from ..kinds import effects_of
from ..limits import patience
from ..points import DROP, Question, SweepPoint, evenly
from ..requests import REQUESTS
from ..roles import MIDDLE
from ..trace import CLIENT, Step, reports
from ._declaration import Strike
from .in_place import AGAIN

KINDS = 4
"""Kinds of requests that are lost and kept back."""
DETAIL = "lost by one thread, and late by another"


def threads(question: Question) -> Iterator[SweepPoint]:
    """In the middle batch, by each kind (some of them, where there are many): the late one goes on when one more is
    asked for than a run has of them. That is in the midst of what is done again, when what was there has been removed
    and is not complete yet."""
    batch = question.middle
    if not question.reference_job:
        return
    clients = {event.get("process") for event in reports(question.trace, batch) if event.get("role") == CLIENT}
    asked = [one for one in effects_of(question, REQUESTS, batch) if one.process in clients and one.steady]
    for lost, late, most in evenly([*_by_two_threads(asked)], KINDS):
        again = Point(late.phase, "before", {**late.where, "batch": batch}, most + 1)
        delay = Action("delay", None, {"longest": patience(question)}, until=again)
        plan = Plan((Fault(lost.point("before", batch), (DROP,)), Fault(late.point("before", batch), (delay,))), AGAIN)
        detail = f"{lost.shown} {DETAIL}"
        yield SweepPoint(
            Step(late.phase, "before"), delay.name, MIDDLE, batch, plan, detail, alone=True, seen_once=True
        )


def _by_two_threads(asked: Sequence[Effect]) -> Iterator[tuple[Effect, Effect, int]]:
    """Of each kind the first two that threads ask for at the same time, and the number of the last one."""
    spans: dict[str, tuple[int, int]] = {}
    kinds: dict[object, list[Effect]] = {}
    for at, one in enumerate(asked):
        spans[one.thread] = spans.get(one.thread, (at, at))[0], at
        kinds.setdefault(one.selectors, []).append(one)
    for alike in kinds.values():
        first_of_threads = {one.thread: one for one in reversed(alike)}.values()
        for one, other in combinations(sorted(first_of_threads, key=lambda one: one.nth), 2):
            if spans[other.thread][0] <= spans[one.thread][1]:
                yield one, other, alike[-1].nth
                break


STRIKE = Strike(86, (threads,))
