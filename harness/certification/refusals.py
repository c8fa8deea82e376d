"""Refusals that come back: who asks again must not go on as if the last time had succeeded.

Whether a sink asks again by itself shows in the trial that refused it once: the same run, or the same attempt of a
task, comes to such a request more often than in the reference trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ...faults import format_action, format_fault
from .points import Question, SweepPoint
from .retries import TIMES
from .starts import Struck
from .trace import Event, Step, around

ANSWER = "answer"

ALIKE = ("phase", "edge", "service", "kind", "batch", "partition", "attempt")


def is_refused(point: SweepPoint) -> bool:
    """Whether it is one request that the service says it has not done."""
    if len(point.plan.faults) > 1 or point.batch is None or not isinstance(point.at, Step):
        return False
    return point.at.edge == "before" and point.plan.faults[0].actions[0].name == ANSWER


def refused_again(question: Question, struck: Iterable[Struck]) -> Iterator[SweepPoint]:
    """The same refusal several times in a row; ``struck`` are refused points with the journals of their trials."""
    for point, journal in struck:
        if _asked_again(question, point, journal):
            (fault,) = point.plan.faults
            (action,) = fault.actions
            again = replace(action, arguments={**action.arguments, "times": TIMES})
            plan = replace(point.plan, faults=(replace(fault, actions=(again,)),))
            yield replace(point, action=format_action(again), plan=plan)


def _asked_again(question: Question, point: SweepPoint, journal: Sequence[Event]) -> bool:
    _, after = around(format_fault(point.plan.faults[0]), journal)
    refused = after[0]["point"]
    asked = [event for event in journal if event.get("run") == refused.get("run") and _alike(event, refused)]
    return len(asked) > sum(_alike(event, refused) for event in question.trace)


def _alike(event: Event, request: Event) -> bool:
    return event["event"] == "point" and all(event.get(name) == request.get(name) for name in ALIKE)
