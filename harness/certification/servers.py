"""The servers of the sink's targets die, recover, and have what they promised to have: or not, where the sink asked for
less (synchronous_commit, UNLOGGED). All connections are lost at once, besides."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from ...faults import Action, Fault, Plan, Point, format_action
from .effects import steady
from .points import Question, SweepPoint, selector
from .requests import REQUESTS
from .trace import Step, executed

STEPS = (Step("sink.write", "before"), Step("sink.write", "after"), Step("batch.commit", "after"))

Place = tuple[str, int, Step, Point, str]
"""The role, the batch, the step as the matrix has it, the point, and what tells it from others of its cell."""


def servers(question: Question) -> Iterator[SweepPoint]:
    """Of each server: around the hand-over and behind the batch, before the first request of each kind, and behind the
    last one of all. The roles take turns."""
    for server in question.servers:
        kill, turns = Action("kill", server), count()
        for places in (*_at_steps(question), *_at_requests(question, server)):
            role, batch, here, at, detail = places[next(turns) % len(places)]
            plan = Plan((Fault(at, (kill,)),))
            yield SweepPoint(here, format_action(kill), role, batch, plan, detail, exclusive=True)


def _at_steps(question: Question) -> Iterator[list[Place]]:
    for step in STEPS:
        having = [
            (role, batch) for role, batch in question.roles.items() if step in executed(question.trace, batch).steps
        ]
        if having:
            yield [(role, batch, step, selector(step, batch), "") for role, batch in having]


def _at_requests(question: Question, server: str) -> Iterator[list[Place]]:
    """Of requests that every run of a batch has."""
    before: dict[object, list[Place]] = {}
    behind: list[Place] = []
    for role, batch in question.roles.items():
        found = [one for one in steady(question, REQUESTS, batch) if one.where["service"] == server]
        for one in found:
            if one.nth == 1:
                place = (role, batch, Step(one.phase, "before"), one.point("before", batch), one.shown)
                before.setdefault(one.where["kind"], []).append(place)
        if found and found[-1].answered:
            last = found[-1]
            behind.append((role, batch, Step(last.phase, "after"), last.point("after", batch), last.shown))
    yield from before.values()
    if behind:
        yield behind
