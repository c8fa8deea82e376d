"""An orderly end of the driver (SIGTERM), where a batch is under way: sinks may have code that runs then."""

from __future__ import annotations

from collections.abc import Iterator

from ....faults import Fault, Plan, Point, format_action
from ..kinds import FAMILIES, effects_of
from ..points import STOP, Question, SweepPoint, line_at, of_one_task, selector
from ..roles import MIDDLE
from ..steps import shown
from ..trace import Line, Step, driver_lines, executed
from ._declaration import Strike


def stops(question: Question) -> Iterator[SweepPoint]:
    """In the middle batch: before it is handed over, where its first task has ended, and before the global commit;
    behind its first request and before its last one, and so of its changes of files, where it is done in part; and at
    the first and the last line that the driver's Python runs of it."""
    batch = question.middle
    seen = executed(question.trace, batch)
    for step in (Step("sink.write", "before"), Step("task.run", "after", seen.writing), Step("sink.commit", "before")):
        if step in seen.steps:
            yield _point(shown(step, seen), of_one_task(selector(step, batch), seen), batch)
    for found in filter(None, (effects_of(question, family, batch) for family in FAMILIES)):
        for one, edge in ((found[0], "after"), (found[-1], "before"))[not found[0].answered :]:
            yield _point(Step(one.phase, edge), one.point(edge, batch), batch, one.shown)
    lines = driver_lines(question.trace, batch)
    ends = [(lines[0], 1), (lines[-1], lines.count(lines[-1]))] if lines else []
    for line, nth in dict.fromkeys(ends):
        yield _point(line, line_at(line, batch, nth), batch)


def _point(here: Step | Line, at: Point, batch: int, detail: str = "") -> SweepPoint:
    return SweepPoint(here, format_action(STOP), MIDDLE, batch, Plan((Fault(at, (STOP,)),)), detail, alone=True)


STRIKE = Strike(60, (stops,))
