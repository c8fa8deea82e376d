"""Losses of power, for sinks that say that they are durable: what they did not sync must not matter any more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....faults import Fault, Plan, Point, format_action
from ..effects import Effect, ends
from ..files import FILES
from ..kinds import effects_of
from ..points import EMPTIED, KILL, POWER, Question, SweepPoint, end_of, evenly
from ..roles import MIDDLE
from ..trace import Step
from ._declaration import Strike

WHERE = (("sink.write", "after"), ("batch.commit", "before"), ("batch.commit", "after"))
"""The sink has done its part of the batch; after the last one the engine never comes back to it."""

NAMING = ("rename", "link")
"""Changes behind which a name is there that a loss of power may take away, or whose content."""

AT_MOST = 8
"""Changes behind that one, the first and the last of each kind, evenly."""

BEHIND = "then power is lost behind the batch"


def power_losses(question: Question) -> Iterator[SweepPoint]:
    for role, batch in question.roles.items() if question.durable else ():
        for phase, edge in WHERE:
            plan = Plan((Fault(Point(phase, edge, {"batch": batch}), (POWER,)),))  # type: ignore[arg-type]
            yield SweepPoint(Step(phase, edge), format_action(POWER), role, batch, plan)


def left_unsynced(question: Question) -> Iterator[SweepPoint]:
    """The driver dies in the middle batch where a file has its name, before changes that follow; its successor commits
    the batch, and power is lost then: what it found it must not take for durable."""
    batch = question.middle
    for one in _behind_a_name(question, batch):
        faults = (Fault(one.point("before", batch), (KILL,)), Fault(end_of(batch), (POWER,)))
        here, detail = Step(one.phase, "before"), f"{one.shown}, {BEHIND}"
        yield SweepPoint(here, format_action(KILL), MIDDLE, batch, Plan(faults), detail, alone=True)


def emptied(question: Question) -> Iterator[SweepPoint]:
    """Power is lost there, and what was written to files, but not the names that they have got: whoever takes a file
    that is there for a whole one has to sync it before it gets its name."""
    batch = question.middle
    for one in _behind_a_name(question, batch):
        plan = Plan((Fault(one.point("before", batch), (EMPTIED,)),))
        yield SweepPoint(Step(one.phase, "before"), format_action(EMPTIED), MIDDLE, batch, plan, one.shown)


def _behind_a_name(question: Question, batch: int) -> Sequence[Effect]:
    """Changes behind the batch's first one that gives a file its name, of a sink that says that it is durable."""
    found = effects_of(question, FILES, batch) if question.durable else ()
    named = [number for number, one in enumerate(found) if one.where["op"] in NAMING]
    return evenly(ends(found[named[0] + 1 :]), AT_MOST) if named else ()


STRIKE = Strike(30, (power_losses, left_unsynced, emptied))
