"""The library of known failures, for sinks that are held against it."""

from __future__ import annotations

from collections.abc import Iterator

from ....faults import Plan, Point, known_failures, parse, takes_service_away
from ....faults.settings import settings_of
from ..points import ANY_BATCH, Question, SweepPoint
from ..trace import Step
from ._declaration import Strike

KNOWN = "plan "
"""What stands before a failure's name, where others have a step."""


def known(question: Question) -> Iterator[SweepPoint]:
    """Each plan of the library, where they are asked for. One may strike several batches: it has a run of its own."""
    for failure in known_failures() if question.known_failures else ():
        plan = parse(failure.plan)
        action = " then ".join(action.on_target for action in plan.faults[0].actions)
        batch = _batch(plan)
        role = next((role for role, its in question.roles.items() if its == batch), ANY_BATCH)
        here = Step(f"{KNOWN}{failure.name}")
        yield SweepPoint(here, action, role, batch, plan, alone=True, exclusive=_strikes_others(plan))


def _strikes_others(plan: Plan) -> bool:
    """Whether what it does is felt by jobs that run beside this one, or they by what it finds."""
    second_query = any(action.target == "query" for fault in plan.faults for action in fault.actions)
    return second_query or takes_service_away(plan) or bool(settings_of(plan.settings).broker)


def _batch(plan: Plan) -> int | None:
    """The batch that is struck first."""
    at = plan.faults[0].at
    batch = at.where.get("batch") if isinstance(at, Point) else None
    return batch if isinstance(batch, int) else None


STRIKE = Strike(15, (known,), steps_only=True)
