"""A target that is away for longer than its clients try: a service that cannot be reached, a disk that is full. Whoever
tries again and again must not go on as if the last try had succeeded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ....faults import Action, Fault, Plan, Point, format_action
from ..effects import Effect, steady
from ..files import FILES, alike
from ..limits import tries
from ..points import Question, SweepPoint
from ..requests import REQUESTS
from ..roles import MIDDLE
from ..trace import Step
from ._declaration import Strike

AWAY = 40.0
"""Seconds: more than the waits of five tries, each twice as long as the one before, from a second on (31)."""


def outages(question: Question) -> Iterator[SweepPoint]:
    """In the middle batch, each service before its first request, and behind its last one, which was carried out; and
    the disk where the first file is changed."""
    batch = question.middle
    for found in _by_service(steady(question, REQUESTS, batch)):
        yield _away(found[0], "before", batch)
        if found[-1].answered:
            yield _away(found[-1], "after", batch)
    if changed := steady(question, FILES, batch):
        yield _full(changed[0], batch, tries(question))


def _by_service(requests: Iterable[Effect]) -> Iterable[list[Effect]]:
    found: dict[str, list[Effect]] = {}
    for one in requests:
        found.setdefault(str(one.where["service"]), []).append(one)
    return found.values()


def _away(effect: Effect, edge: str, batch: int) -> SweepPoint:
    down = Action("down", None, {"for": AWAY})
    plan = Plan((Fault(effect.point(edge, batch), (down,)),))
    here, shown = Step(effect.phase, edge), format_action(down)
    return SweepPoint(here, shown, MIDDLE, batch, plan, effect.shown, alone=True)


def _full(effect: Effect, batch: int, times: int) -> SweepPoint:
    """So many changes of a file fail in a row."""
    where, full = alike(effect), Action("fail", None, {"error": "ENOSPC", "times": times})
    plan = Plan((Fault(Point(effect.phase, "before", {**where, "batch": batch}), (full,)),))
    detail = f"{where['op']} in {str(where['path']).removesuffix('/*')}"
    return SweepPoint(Step(effect.phase, "before"), format_action(full), MIDDLE, batch, plan, detail, alone=True)


STRIKE = Strike(75, (outages,))
