"""A driver that stands still until another one has done its batch, and then goes on where it was: who fences it off?

It is struck where it may just have looked whether the batch is known, and has not written it yet: before each line that
may change something. Not at requests, since what is stopped there goes out as soon as its process stands still.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...faults import Action, Fault, Plan, Point, format_action
from .points import Question, SweepPoint, line_at, selector
from .roles import MIDDLE
from .steps import shown
from .trace import Line, Step, driver_lines, executed

AT_MOST = 6
"""Lines; of more, those that lie evenly between the first and the last."""

LONGEST = 30.0
"""Seconds, but for those in which the driver that takes its place works on its start: what holds a lock goes on then,
and so does whoever waits for it."""


def zombies(question: Question) -> Iterator[SweepPoint]:
    """In the middle batch: before it is handed over, before the global commit, and at lines that the driver runs."""
    batch = question.roles.get(MIDDLE)
    if batch is None:
        return
    seen = executed(question.trace, batch)
    for step in (Step("sink.write", "before"), Step("sink.commit", "before")):
        if step in seen.steps:
            yield _point(shown(step, seen), selector(step, batch), batch)
    lines = [line for line in dict.fromkeys(driver_lines(question.trace, batch)) if question.code.acts(line)]
    for line in _evenly(lines):
        yield _point(line, line_at(line, batch, 1), batch)


def _evenly(lines: list[Line]) -> list[Line]:
    if len(lines) <= AT_MOST:
        return lines
    return [lines[round(turn * (len(lines) - 1) / (AT_MOST - 1))] for turn in range(AT_MOST)]


def _point(here: Step | Line, at: Point, batch: int) -> SweepPoint:
    done = Point("batch.commit", "after", {"batch": batch})
    pause = Action("pause", "driver", {"longest": LONGEST}, until=done)
    shown = format_action(Action("pause", "driver"))
    return SweepPoint(here, shown, MIDDLE, batch, Plan((Fault(at, (pause,)),)), detail="taken for dead", alone=True)
