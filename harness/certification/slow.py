"""Requests that take longer than their client may wait, and a driver that comes back late: whoever gives up after a
while and asks again has asked twice, and what is kept for a while only is gone by then."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ...faults import Action, Fault, Plan, format_action
from .points import CRASH, KILL, Question, SweepPoint, crash_in
from .requests import first_of_each_kind
from .roles import MIDDLE
from .trace import Step, executed

TAKES = 11.0
"""Seconds: more than clients are commonly told to wait (5, 10)."""

AWAY = 65.0
"""Seconds from the driver's death to its successor's start: more than a minute, for which markers are commonly kept."""


def slow_requests(question: Question) -> Iterator[SweepPoint]:
    """The first request of each kind, on its way out and on its way back, the roles in rotation. One that its client
    has given up arrives all the same."""
    kinds = [places for places in first_of_each_kind(question) if places[0][1].answered]
    delay = Action("delay", None, {"for": TAKES})
    for turn, (places, edge) in enumerate(product(kinds, ("before", "after"))):
        role, effect = places[turn % len(places)]
        batch = question.roles[role]
        plan = Plan((Fault(effect.point(edge, batch), (delay,)),))
        yield SweepPoint(Step(effect.phase, edge), format_action(delay), role, batch, plan, effect.shown)


def late_recovery(question: Question) -> Iterator[SweepPoint]:
    """In the middle batch, behind all of it."""
    batch = question.roles.get(MIDDLE)
    here = Step(CRASH.phase, str(CRASH.edge))
    if batch is None or here not in executed(question.trace, batch).steps:
        return
    plan = Plan((Fault(crash_in(batch).at, (KILL, Action("restart", "driver", {"after": AWAY}))),))
    yield SweepPoint(here, format_action(KILL), MIDDLE, batch, plan, detail=f"back after {AWAY:g} s", alone=True)
