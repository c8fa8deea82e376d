"""The servers of the sink's targets die, recover, and have what they promised to have: or not, where the sink asked for
less (synchronous_commit, UNLOGGED). All connections are lost at once, besides."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from ....faults import Action, Fault, Plan, Point, format_action
from ..effects import Effect, steady
from ..kinds import in_tasks
from ..points import Question, SweepPoint, selector
from ..requests import REQUESTS, first_of_each_kind
from ..steps import shown
from ..trace import Step, executed
from ._declaration import Strike

COMMITTED = Step("sink.commit", "before")
STEPS = (Step("sink.write", "before"), COMMITTED, Step("sink.write", "after"), Step("batch.commit", "after"))


def servers(question: Question) -> Iterator[SweepPoint]:
    """Of each server: around the hand-over and behind the batch, between the tasks that write and the global commit,
    before the first request of each kind, and behind the last one of all. The roles take turns."""
    for server in question.servers:
        points = (_at_steps(question, server), _behind_tasks(question, server), _at_requests(question, server))
        for turn, in_roles in enumerate(chain(*points)):
            yield in_roles[turn % len(in_roles)]


def _at_steps(question: Question, server: str) -> Iterator[list[SweepPoint]]:
    """Each step in the batches that have it."""
    for step in STEPS:
        having = [item for item in question.roles.items() if step in executed(question.trace, item[1]).steps]
        if having:
            yield [_crash(server, step, selector(step, batch), role, batch) for role, batch in having]


def _behind_tasks(question: Question, server: str) -> Iterator[list[SweepPoint]]:
    """Where the last of the tasks has ended, if these ask for something and no step says that the driver comes next:
    their connections are closed then, and the driver's may not be open yet."""
    found = []
    for role, batch in question.roles.items():
        seen = executed(question.trace, batch)
        ended = Step("task.run", "after", seen.writing)
        asking = any(in_tasks(question, batch, seen.writing, (REQUESTS.phase,)))
        if asking and ended in seen.steps and COMMITTED not in seen.steps:
            at = selector(ended, batch, seen.steps[ended])
            found.append(_crash(server, shown(ended, seen), at, role, batch, "of the last task"))
    if found:
        yield found


def _at_requests(question: Question, server: str) -> Iterator[list[SweepPoint]]:
    """Requests that every run of a batch has."""
    for places in first_of_each_kind(question):
        if places[0][1].where["service"] == server:
            yield [_at_request(question, server, one, "before", role) for role, one in places]
    last: list[SweepPoint] = []
    for role, batch in question.roles.items():
        found = [one for one in steady(question, REQUESTS, batch) if one.where["service"] == server]
        if found and found[-1].answered:
            last.append(_at_request(question, server, found[-1], "after", role))
    if last:
        yield last


def _at_request(question: Question, server: str, one: Effect, edge: str, role: str) -> SweepPoint:
    batch = question.roles[role]
    return _crash(server, Step(one.phase, edge), one.point(edge, batch), role, batch, one.shown)


def _crash(server: str, here: Step, at: Point, role: str, batch: int, detail: str = "") -> SweepPoint:
    kill = Action("kill", server)
    return SweepPoint(here, format_action(kill), role, batch, Plan((Fault(at, (kill,)),)), detail, exclusive=True)


STRIKE = Strike(70, (servers,))
