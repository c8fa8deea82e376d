"""A batch whose driver dies several times in a row: sinks that count their tries give it up at some time."""

from __future__ import annotations

from collections.abc import Iterator

from ...faults import format_action
from .points import KILL, Question, SweepPoint, in_a_row, of_one_task, selector
from .roles import MIDDLE
from .steps import shown
from .trace import Step, executed

CRASHES = 3
"""Sinks that give a batch up usually do so within four tries."""
IN_A_ROW = f"{CRASHES} times in a row"


def crash_loops(question: Question) -> Iterator[SweepPoint]:
    """The middle batch, each time struck where its first task has ended, and before the sink's global commit.

    At both, no replay can come out of the batch by another way: nothing of it is committed as a whole.
    """
    batch = question.roles.get(MIDDLE)
    if batch is None:
        return
    seen = executed(question.trace, batch)
    for step in (Step("task.run", "after", seen.writing), Step("sink.commit", "before")):
        if step in seen.steps:
            plan = in_a_row(of_one_task(selector(step, batch), seen), KILL, CRASHES)
            yield SweepPoint(shown(step, seen), format_action(KILL), MIDDLE, batch, plan, detail=IN_A_ROW)
