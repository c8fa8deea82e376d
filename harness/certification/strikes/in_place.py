"""A query that its application starts again in the same process when it fails: what the sink keeps in memory is what
the first run left there, and not lost as in a new driver."""

from __future__ import annotations

from collections.abc import Iterator

from ....faults import Action, Fault, Moment, Plan, Point, format_action
from ..effects import steady
from ..files import FILES
from ..points import CRASH, DROP, FAIL, Question, SweepPoint, crash_in, line_at
from ..requests import REQUESTS
from ..roles import MIDDLE
from ..trace import Line, Step, driver_lines, executed
from ._declaration import Strike

STARTS = 4
AGAIN = {"starts": str(STARTS)}
"""What the plan sets: jobs of the user's own may not know how to do so, and are not asked to."""

DETAIL = "started again in place"


def in_place(question: Question) -> Iterator[SweepPoint]:
    """In the middle batch, the query fails behind all of it, and where the batch is half done: by a request that is
    lost on its way out, and on its way back; else by a change of a file, or at a line, that fails."""
    batch = question.middle
    if not question.reference_job:
        return
    here = Step(CRASH.phase, str(CRASH.edge))
    if here in executed(question.trace, batch).steps:
        yield _point(here, crash_in(batch).at, FAIL, batch)
    if asked := steady(question, REQUESTS, batch):
        yield _point(Step(asked[-1].phase, "before"), asked[-1].point("before", batch), DROP, batch)
        if asked[-1].answered:
            yield _point(Step(asked[-1].phase, "after"), asked[-1].point("after", batch), DROP, batch)
    elif changed := steady(question, FILES, batch):
        yield _point(Step(changed[-1].phase, "before"), changed[-1].point("before", batch), FAIL, batch)
    elif lines := driver_lines(question.trace, batch):
        yield _point(lines[-1], line_at(lines[-1], batch, lines.count(lines[-1])), FAIL, batch)


def _point(here: Step | Line, at: Point | Moment, action: Action, batch: int) -> SweepPoint:
    plan = Plan((Fault(at, (action,)),), AGAIN)
    return SweepPoint(here, format_action(action), MIDDLE, batch, plan, detail=DETAIL, alone=True)


STRIKE = Strike(85, (in_place,))
