"""A target's service that cannot be reached for longer than its clients try: whoever tries again and again must not go
on as if the last try had succeeded."""

from __future__ import annotations

from collections.abc import Iterator

from ...faults import Action, Fault, Plan, format_action
from .effects import Effect, steady
from .points import Question, SweepPoint
from .requests import REQUESTS
from .roles import MIDDLE
from .trace import Step

AWAY = 40.0
"""Seconds: more than the waits of five tries, each twice as long as the one before, from a second on (31)."""


def outages(question: Question) -> Iterator[SweepPoint]:
    """Of each service in the middle batch: before its first request, and behind its last one, which was carried out."""
    batch = question.roles.get(MIDDLE)
    if batch is None:
        return
    of_service: dict[str, list[Effect]] = {}
    for one in steady(question, REQUESTS, batch):
        of_service.setdefault(str(one.where["service"]), []).append(one)
    for found in of_service.values():
        yield _point(found[0], "before", batch)
        if found[-1].answered:
            yield _point(found[-1], "after", batch)


def _point(effect: Effect, edge: str, batch: int) -> SweepPoint:
    down = Action("down", None, {"for": AWAY})
    plan = Plan((Fault(effect.point(edge, batch), (down,)),))
    here, shown = Step(effect.phase, edge), format_action(down)
    return SweepPoint(here, shown, MIDDLE, batch, plan, effect.shown, alone=True)
