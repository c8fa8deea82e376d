"""A query that its application starts again in the same process when it fails: what the sink keeps in memory is what
the first run left there, and not lost as in a new driver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ....faults import Action, Fault, Moment, Plan, Point, format_action
from ..effects import Effect, ends, numbers, steady
from ..files import FILES
from ..points import ALL_DONE, DROP, FAIL, Question, SweepPoint, crash_in, evenly, in_a_row, line_at, under
from ..requests import REQUESTS, endings
from ..roles import LAST, MIDDLE
from ..trace import Line, Step, driver_lines, executed
from ._declaration import Strike

STARTS = 4
AGAIN = {"starts": str(STARTS)}
"""What the plan sets: jobs of the user's own may not know how to do so, and are not asked to."""

DETAIL = "started again in place"

AT_MOST = 5
"""Requests or changes of files."""
ENDINGS = 3
"""Requests that end something and that others follow, whose answers are lost."""
AT_THE_END = 3
"""Requests or changes of files of the last batch."""


def in_place(question: Question) -> Iterator[SweepPoint]:
    """In the middle batch, the query fails behind all of it, and where it is done in part, by the first and the last
    request of each kind (some of them, where there are many kinds): they are lost on their way out, the last of all
    also on its way back; else by such changes of files, that fail; and at the middle and the last line. What a sink has
    gathered of the batch by then, or has begun on a connection, may still be there. The last request or change fails in
    all runs but the last, too: a sink may count how often a batch has failed, and give it up. Where it was behind what
    ends the batch, it does not come again: the point with one fault stands for that one."""
    batch = question.middle
    if not question.reference_job:
        return
    if ALL_DONE in executed(question.trace, batch).steps:
        yield _point(ALL_DONE, crash_in(batch).at, FAIL, batch)
    asked, changed = steady(question, REQUESTS, batch), steady(question, FILES, batch)
    if asked:
        yield _again_and_again(asked[-1], DROP, batch)
        for one in evenly(ends(asked), AT_MOST):
            yield _of_effect(one, DROP, batch, asked[-1])
        for one in (*evenly([one for one in endings(asked) if one != asked[-1]], ENDINGS), asked[-1]):
            if one.answered:
                yield _point(Step(one.phase, "after"), one.point("after", batch), DROP, batch)
    elif changed:
        yield _again_and_again(changed[-1], FAIL, batch)
        for one in evenly(ends(changed), AT_MOST):
            yield _of_effect(one, FAIL, batch, changed[-1])
    lines = driver_lines(question.trace, batch)
    found = [one for one in zip(lines, numbers(lines), strict=True) if not question.code.leaves(*one)]
    for place in dict.fromkeys((len(found) // 2, len(found) - 1)) if found else ():
        line, nth = found[place]
        yield _point(line, line_at(line, batch, nth), FAIL, batch)


def in_place_at_the_end(question: Question) -> Iterator[SweepPoint]:
    """The same in the last batch: what is not done there, because the sink takes it for done, no further batch does."""
    last = question.roles.get(LAST)
    if not question.reference_job or last is None:
        return
    for family, action in ((REQUESTS, DROP), (FILES, FAIL)):
        if found := steady(question, family, last):
            for one in evenly(ends(found), AT_THE_END):
                yield replace(_point(Step(one.phase, "before"), one.point("before", last), action, last), role=LAST)
            return


def _again_and_again(effect: Effect, action: Action, batch: int) -> SweepPoint:
    """It fails where it came last in the first run, and where each run but the last has come as far."""
    plan = in_a_row(effect.point("before", batch), action, STARTS - 1, apart=effect.nth)
    here, detail = Step(effect.phase, "before"), f"{DETAIL}, {STARTS - 1} times in a row"
    point = SweepPoint(here, format_action(action), MIDDLE, batch, plan, detail, alone=True, way=_way(effect))
    return under(AGAIN, point)


def _of_effect(effect: Effect, action: Action, batch: int, last: Effect) -> SweepPoint:
    point = _point(Step(effect.phase, "before"), effect.point("before", batch), action, batch)
    return replace(point, way=_way(effect)) if effect == last else point


def _way(effect: Effect) -> str:
    return f"{DETAIL} before {effect.address}"


def _point(here: Step | Line, at: Point | Moment, action: Action, batch: int) -> SweepPoint:
    plan = Plan((Fault(at, (action,)),), AGAIN)
    return SweepPoint(here, format_action(action), MIDDLE, batch, plan, detail=DETAIL, alone=True)


STRIKE = Strike(85, (in_place, in_place_at_the_end))
