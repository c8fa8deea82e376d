"""A driver that stands still until another one has done its batch, and then goes on where it was: who fences it off?
In one point it comes back a batch later, when what was asked for last is not its own batch any more; in others in the
middle of that batch, behind what is done for it first or before what is done last: a name that both use, such as that
of a staging table or of a draft, is then another batch's.

It is struck where it may just have looked whether the batch is known, and has not written it yet: before lines that may
change something, and rather before those that were seen to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product

from ....faults import Point
from ..effects import Effect
from ..files import FILES
from ..kinds import FAMILIES, effects_of
from ..points import Question, SweepPoint, end_of, evenly, has_next, line_at, selector
from ..roles import LAST, MIDDLE
from ..steps import shown
from ..trace import Line, Step, driver_lines, executed, task_lines
from ._declaration import Strike
from ._zombies import BESIDE, acting, kept, of_changes, one_of_several, paused, paused_before, point_of, until_its_end

AT_MOST = 6
"""Lines; of more, those before requests and changes of files, and that lie evenly between the first and the last."""

SHARED = 3
"""Files, named alike in this batch and the next, before whose changes it comes back a batch later as well."""

AT_THE_END = 3
"""Changes of the batch before the last."""

MIDWAY = 20.0
"""Seconds that the other driver is kept at most in the middle of the next batch, until this one has done its own: it
may be about to be refused, or may wait for a lock that the other one holds."""

HANDED_OVER = Step("sink.write", "before")


def zombies(question: Question) -> Iterator[SweepPoint]:
    """In the middle batch: before it is handed over, before the global commit, and at lines that the driver runs. At
    these in the first one, too: what a sink keeps of a query's batches is not there yet."""
    batch = question.middle
    seen = executed(question.trace, batch)
    for step in (HANDED_OVER, Step("sink.commit", "before")):
        if step in seen.steps:
            yield paused(shown(step, seen), selector(step, batch), MIDDLE, batch, end_of(batch), "")
    yield from _a_batch_later(question, batch)
    yield from _at_the_end(question)
    yield from _midway(question, batch)
    yield from _beside(question, batch)
    for role in dict.fromkeys((question.first_role, MIDDLE)):
        for line in _chosen(question, question.roles[role]):
            at = question.roles[role]
            yield until_its_end(line, at) if role == MIDDLE else paused_before(line, role, at, end_of(at))


def _a_batch_later(question: Question, batch: int) -> Iterator[SweepPoint]:
    """Before it is handed over and before changes, until the other driver has done the next batch, too: what is read
    for a batch, and written back with it, does not have that one's. What both batches change by one name, such as a
    manifest, is the first that may be written back; a lock between the two may have been taken too late."""
    if not has_next(question, batch):
        return
    until, detail = end_of(batch + 1), ", until the next batch"
    if all(HANDED_OVER in executed(question.trace, one).steps for one in (batch, batch + 1)):
        yield paused(HANDED_OVER, selector(HANDED_OVER, batch), MIDDLE, batch, until, detail)
    changes = _changes(question, batch)
    shared = [one for one in _named_alike(question, batch) if one not in changes]
    for change in (*_ahead(question, batch, changes), *evenly(shared, SHARED), *evenly(changes, AT_MOST)):
        yield paused_before(change, MIDDLE, batch, until, detail)


def _ahead(question: Question, batch: int, changes: Sequence[Line | Effect]) -> list[Line]:
    """The last line before the first change of a file that calls something: it may take a lock that no change shows
    (flock), for what the sink has looked up before."""
    first = next(iter(changes), None)
    if not isinstance(first, Line) or not effects_of(question, FILES, batch):
        return []
    lines = driver_lines(question.trace, batch)
    return [line for line in lines[: lines.index(first)] if question.code.calls(line)][-1:]


def _at_the_end(question: Question) -> Iterator[SweepPoint]:
    """In the batch before the last, before some of its changes, until the other driver has done the last batch: what
    this one undoes then no further batch mends."""
    last = question.roles.get(LAST, 0)
    roles = [role for role, batch in question.roles.items() if batch == last - 1 and role != MIDDLE]
    for role in roles:
        for change in evenly(_changes(question, last - 1), AT_THE_END):
            yield paused_before(change, role, last - 1, end_of(last), ", until the last batch has ended")


def _midway(question: Question, batch: int) -> Iterator[SweepPoint]:
    """Before the first change and before the last, until the other driver has begun its changes for the next batch, or
    has all but the last behind it; and before each, until the other one is at the same one: a draft of the same name is
    whole then, and not renamed yet. There it waits until this one has ended its batch. (Where it has itself ended that
    batch lies before, and is not counted.)"""
    changes, following = (_changes(question, of) for of in (batch, batch + 1))
    if not changes or len(following) < 2:
        return
    last, ending = len(changes) - 1, len(following) - 1
    alike = [_alike(change) for change in following]
    same = [(number, alike.index(_alike(one))) for number, one in enumerate(changes) if _alike(one) in alike]
    for number, then in dict.fromkeys(((0, 1), (0, ending), (last, ending), *evenly(same, AT_MOST))):
        where = _where(then, ending) if (number, then) not in same else "at the same change"
        yield _until_midway(changes[number], following[then], batch, f", until {where} of the next batch")


def _where(number: int, ending: int) -> str:
    return "before the last change" if number == ending else "behind the first change"


def _alike(change: Line | Effect) -> object:
    """What two batches have in common of a change."""
    return change if isinstance(change, Line) else (change.phase, change.signature, change.nth)


def _until_midway(change: Line | Effect, other: Line | Effect, batch: int, detail: str) -> SweepPoint:
    until = point_of(other, batch + 1)
    return paused_before(change, MIDDLE, batch, until, detail, kept(until, batch, MIDWAY))


def _beside(question: Question, batch: int) -> Iterator[SweepPoint]:
    """Before a line that was seen to change something, until the other driver is behind that one and at the next; there
    it waits until this one has ended the batch: what both prepare under one name has the rows of both then. And before
    the last two, until the other one is behind its first: it may have removed what this one has prepared. Where that
    waits for this one it is never there, and the point without it stands for this one. Not at lines that tasks run,
    too: these may be at the next one while the driver is being stopped."""
    in_tasks = task_lines(question.trace, batch)
    lines = [line for line in of_changes(question, batch) if line not in in_tasks]
    for line, following in evenly([*pairwise(lines)], AT_MOST):
        yield _at_once(line, line_at(following, batch, 1), batch, ", until the other one is at the next change")
    in_order = driver_lines(question.trace, batch)
    for line, (number, where) in product(lines[1:][-2:], enumerate(("before", "behind"))):
        earlier = in_order[: in_order.index(line) + 1].count(lines[number])
        other = line_at(lines[number], batch, earlier + 1)
        point = _at_once(line, other, batch, f", until the other one is {where} its first change")
        yield one_of_several(point, line)


def _at_once(line: Line, other: Point, batch: int, detail: str) -> SweepPoint:
    """Before a line, until the other driver is where it waits for this one to end the batch: what it reports there from
    now on is counted, while a fault counts the reports of this one, too."""
    return paused_before(line, MIDDLE, batch, replace(other, nth=1), detail, kept(other, batch, BESIDE))


def _named_alike(question: Question, batch: int) -> list[Effect]:
    """The batch's changes of files whose names the next batch has, too."""
    following = {one.address for one in effects_of(question, FILES, batch + 1)}
    found = effects_of(question, FILES, batch)
    return [one for one in found if one.address in following and "*" not in str(one.where["path"])]


def _changes(question: Question, batch: int) -> Sequence[Line | Effect]:
    """The driver's lines that were seen to change something; where there are none, requests or changes of files."""
    if lines := of_changes(question, batch):
        return lines
    return max((effects_of(question, family, batch) for family in FAMILIES), key=len)


def _chosen(question: Question, batch: int) -> list[Line]:
    lines, changing = acting(question, batch), of_changes(question, batch)
    first = evenly(changing, AT_MOST)
    others = evenly([line for line in lines if line not in changing], AT_MOST - len(first))
    return [line for line in lines if line in (*first, *others)]


STRIKE = Strike(65, (zombies,))
