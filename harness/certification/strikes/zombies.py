"""A driver that stands still until another one has done its batch, and then goes on where it was: who fences it off?
In one point it comes back a batch later, when what was asked for last is not its own batch any more; in others in the
middle of that batch, behind what is done for it first or before what is done last: a name that both use, such as that
of a staging table or of a draft, is then another batch's.

It is struck where it may just have looked whether the batch is known, and has not written it yet: before lines that may
change something, and rather before those that were seen to; and before requests and changes of files, because a library
may have looked within one line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from ....faults import Action, Fault, Plan, Point, format_action
from ..effects import Effect, Family, steady
from ..files import FILES
from ..points import KILL, Question, SweepPoint, line_at, selector
from ..requests import REQUESTS
from ..roles import MIDDLE
from ..steps import shown
from ..trace import WORKER, Event, Line, Step, driver_lines, executed, line_of, reports
from ._declaration import Strike

AT_MOST = 6
"""Lines; of more, those before requests and changes of files, and that lie evenly between the first and the last."""

EFFECTS = 2
"""Requests, and changes of files, in the middle batch: the first and the last. Of a sink without lines that were seen
to change something there are twice as many, and the last one is struck in the first batch, too."""

LONGEST = 30.0
"""Seconds, but for those in which the driver that takes its place works on its start: what holds a lock goes on then,
and so does whoever waits for it."""

MIDWAY = 20.0
"""Seconds that the other driver is kept at most in the middle of the next batch, until this one has done its own: it
may be about to be refused, or may wait for a lock that the other one holds."""


One = TypeVar("One")

FAMILIES = (REQUESTS, FILES)

FOR_GOOD = ", for good"

HANDED_OVER = Step("sink.write", "before")


def zombies(question: Question) -> Iterator[SweepPoint]:
    """In the middle batch: before it is handed over, before the global commit, at lines that the driver runs, and at
    requests and changes of files. At lines in the first one, too: what a sink keeps of a query's batches is not there
    yet."""
    batch = question.roles.get(MIDDLE)
    if batch is None:
        return
    seen = executed(question.trace, batch)
    for step in (HANDED_OVER, Step("sink.commit", "before")):
        if step in seen.steps:
            yield _point(shown(step, seen), selector(step, batch), MIDDLE, batch, batch)
    if HANDED_OVER in seen.steps and HANDED_OVER in executed(question.trace, batch + 1).steps:
        yield _point(HANDED_OVER, selector(HANDED_OVER, batch), MIDDLE, batch, batch + 1)
    yield from _midway(question, batch)
    first = min(question.roles, key=question.roles.__getitem__)
    for role in dict.fromkeys((first, MIDDLE)):
        for line in _chosen(question, question.roles[role]):
            at = question.roles[role]
            yield _point(line, line_at(line, at, 1), role, at, at)
    yield from _at_effects(question, first)
    yield from _for_good(question, batch)


def _at_effects(question: Question, first: str) -> Iterator[SweepPoint]:
    by_lines = bool(_of_changes(question, question.roles[MIDDLE]))
    for family in FAMILIES:
        for effect in _evenly(_effects(question, family, question.roles[MIDDLE]), EFFECTS if by_lines else 2 * EFFECTS):
            yield _before(effect, MIDDLE, question.roles[MIDDLE])
        if first != MIDDLE and not by_lines:
            for effect in _effects(question, family, question.roles[first])[-1:]:
                yield _before(effect, first, question.roles[first])


def _for_good(question: Question, batch: int) -> Iterator[SweepPoint]:
    """It never goes on: before the last request, else the last change of a file, else the last line that may change
    something. Whoever leaves a batch to the one that holds its lock then leaves it to nobody."""
    if found := [one for family in FAMILIES for one in _effects(question, family, batch)[-1:]]:
        yield _before(found[0], MIDDLE, batch, KILL)
    elif lines := _acting(question, batch):
        yield _paused(lines[-1], line_at(lines[-1], batch, 1), MIDDLE, batch, _end_of(batch), FOR_GOOD, then=(KILL,))


def _effects(question: Question, family: Family, batch: int) -> Sequence[Effect]:
    asked = question.phases is None or family.phase in question.phases
    return steady(question, family, batch) if asked else ()


def _before(effect: Effect, role: str, batch: int, *then: Action) -> SweepPoint:
    here, detail = Step(effect.phase, "before"), f"{FOR_GOOD if then else ''}, {effect.shown}"
    return _paused(here, effect.point("before", batch), role, batch, _end_of(batch), detail, then=then)


def _end_of(batch: int) -> Point:
    return Point("batch.commit", "after", {"batch": batch})


def _midway(question: Question, batch: int) -> Iterator[SweepPoint]:
    """Before the first change and before the last, until the other driver has begun its changes for the next batch, or
    has all but the last behind it; there it waits until this one has ended its batch. (Where it has itself ended that
    batch lies before, and is not counted.)"""
    changes, following = (_changes(question, of) for of in (batch, batch + 1))
    if not changes or len(following) < 2:
        return
    last, ending = len(changes) - 1, len(following) - 1
    ended = Point("sink.write", "after", {"batch": batch})
    for number, then in dict.fromkeys(((0, 1), (0, ending), (last, ending))):
        where = "before the last change" if then == ending else "behind the first change"
        change, detail = changes[number], f", until {where} of the next batch"
        at, until = _at(change, batch), _at(following[then], batch + 1)
        kept = Fault(until, (Action("delay", None, {"longest": MIDWAY}, until=ended),))
        if isinstance(change, Line):
            yield _paused(change, at, MIDDLE, batch, until, detail, kept)
        else:
            yield _paused(Step(change.phase, "before"), at, MIDDLE, batch, until, f"{detail}, {change.shown}", kept)


def _changes(question: Question, batch: int) -> Sequence[Line | Effect]:
    """The driver's lines that were seen to change something; where there are none, requests or changes of files."""
    if lines := _of_changes(question, batch):
        return lines
    return max((_effects(question, family, batch) for family in FAMILIES), key=len)


def _at(change: Line | Effect, batch: int) -> Point:
    return line_at(change, batch, 1) if isinstance(change, Line) else change.point("before", batch)


def _acting(question: Question, batch: int) -> list[Line]:
    """The driver's lines that may change something in a batch, in the order of their first executions."""
    return [line for line in dict.fromkeys(driver_lines(question.trace, batch)) if question.code.acts(line)]


def _of_changes(question: Question, batch: int) -> list[Line]:
    """Those that were seen to."""
    changing = _changing(question.trace, batch)
    return [line for line in _acting(question, batch) if line in changing]


def _chosen(question: Question, batch: int) -> list[Line]:
    lines, changing = _acting(question, batch), _of_changes(question, batch)
    first = _evenly(changing, AT_MOST)
    others = _evenly([line for line in lines if line not in changing], AT_MOST - len(first))
    return [line for line in lines if line in (*first, *others)]


def _changing(trace: Sequence[Event], batch: int) -> set[Line]:
    """The lines of the driver after which something left the job, before its next one."""
    line: Line | None = None
    found: set[Line] = set()
    for event in reports(trace, batch):
        if event["phase"] == "line" and event.get("role") != WORKER:
            line = line_of(event)
        elif line and event["phase"] in (REQUESTS.phase, FILES.phase):
            found.add(line)
    return found


def _evenly(found: Sequence[One], most: int) -> Sequence[One]:
    """So many of them at most, the first and the last among these.

    >>> _evenly(range(1, 10), 3), _evenly(range(1, 10), 1), _evenly(range(1, 3), 3)
    ([1, 5, 9], [1], range(1, 3))
    """
    if len(found) <= most:
        return found
    return [found[round(turn * (len(found) - 1) / max(1, most - 1))] for turn in range(most)]


def _point(here: Step | Line, at: Point, role: str, batch: int, until: int) -> SweepPoint:
    """``until``: the batch behind which it goes on."""
    detail = "" if until == batch else ", until the next batch"
    return _paused(here, at, role, batch, _end_of(until), detail)


def _paused(
    here: Step | Line,
    at: Point,
    role: str,
    batch: int,
    until: Point,
    detail: str,
    *more: Fault,
    then: Sequence[Action] = (),
) -> SweepPoint:
    pause = Action("pause", "driver", {"longest": LONGEST}, until=until)
    shown = format_action(Action("pause", "driver"))
    plan = Plan((Fault(at, (pause, *then)), *more))
    return SweepPoint(here, shown, role, batch, plan, f"taken for dead{detail}", alone=True)


STRIKE = Strike(65, (zombies,))
