"""A task that fails while its rows are on their way to Python code, which takes the end of their stream for the end of
the rows: what it does then with a part of them must not count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from ....faults import Fault, Plan, format_action
from ..points import FAIL, Question, SweepPoint, selector
from ..steps import shown
from ..trace import Step, executed, reports
from ._declaration import Strike

INPUT = "task.input"


def cut_short(question: Question) -> Iterator[SweepPoint]:
    """In the batch of each role, and in each stage that has such code: the task with the most pieces of rows fails
    before the last one; the report behind it is that of their end."""
    for role, batch in question.roles.items():
        seen = executed(question.trace, batch)
        for stage, (partition, pieces) in _longest(question, batch).items():
            step = Step(INPUT, "before", stage)
            at = selector(step, batch, max(1, pieces - 1))
            plan = Plan((Fault(replace(at, where={**at.where, "partition": partition}), (FAIL,)),))
            yield SweepPoint(shown(step, seen), format_action(FAIL), role, batch, plan, "before the last of its rows")


def _longest(question: Question, batch: int) -> dict[int, tuple[int, int]]:
    """By stage: its partition with the most pieces, and how many these are."""
    here = [event for event in reports(question.trace, batch) if event["phase"] == INPUT]
    pieces = Counter((event["stage"], event["partition"]) for event in here)
    found: dict[int, tuple[int, int]] = {}
    for (stage, partition), number in sorted(pieces.items()):
        if number > found.get(stage, (0, 0))[1]:
            found[stage] = partition, number
    return found


STRIKE = Strike(12, (cut_short,))
