"""A task that fails while its rows are on their way to its Python code, which takes the end of their stream for the end
of the rows: what it does then with a part of them must not count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ....faults import Fault, Plan, format_action
from ..points import FAIL, Question, SweepPoint, selector
from ..roles import MIDDLE
from ..steps import shown
from ..trace import Executed, Step, executed, reports
from ._declaration import Strike

INPUT = "task.input"

ROW_BY_ROW = {"spark.buffer.size": "8", "spark.sql.execution.arrow.maxRecordsPerBatch": "1"}
"""A piece has one row, to begin with, and is sent at once: Arrow asks for a buffer of more than four bytes."""


def cut_short(question: Question) -> Iterator[SweepPoint]:
    """Of each stage, the task with the most pieces of rows fails: in the batch of each role before the last piece,
    where there are several (the report behind it is that of their end); in the middle batch with one row sent."""
    for role, batch in question.roles.items():
        seen = executed(question.trace, batch)
        for stage, (partition, pieces) in _longest(question, batch).items():
            if pieces > 2:
                yield _point(seen, (role, batch), (stage, partition), pieces - 1, "before the last of its rows")
            if role == MIDDLE and pieces > 1:
                yield _point(seen, (role, batch), (stage, partition), 2, "behind the first of its rows", ROW_BY_ROW)


def _point(
    seen: Executed,
    where: tuple[str, int],
    task: tuple[int, int],
    nth: int,
    detail: str,
    settings: Mapping[str, str] | None = None,
) -> SweepPoint:
    (role, batch), (stage, partition) = where, task
    step = Step(INPUT, "before", stage)
    at = selector(step, batch, nth)
    plan = Plan((Fault(replace(at, where={**at.where, "partition": partition}), (FAIL,)),), settings or {})
    return SweepPoint(shown(step, seen), format_action(FAIL), role, batch, plan, detail, alone=bool(settings))


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
