"""Losses of power, for sinks that say that they are durable: what they did not sync must not matter any more."""

from __future__ import annotations

from collections.abc import Iterator

from ....faults import Fault, Plan, Point, format_action
from ..points import POWER, Question, SweepPoint
from ..trace import Step
from ._declaration import Strike

WHERE = (("sink.write", "after"), ("batch.commit", "before"), ("batch.commit", "after"))
"""The sink has done its part of the batch; after the last one the engine never comes back to it."""


def power_losses(question: Question) -> Iterator[SweepPoint]:
    for role, batch in question.roles.items() if question.durable else ():
        for phase, edge in WHERE:
            plan = Plan((Fault(Point(phase, edge, {"batch": batch}), (POWER,)),))  # type: ignore[arg-type]
            yield SweepPoint(Step(phase, edge), format_action(POWER), role, batch, plan)


STRIKE = Strike(30, (power_losses,))
