"""Errors that come back: who tries again must not go on as if the last try had succeeded.

Whether an error is followed by another try shows in the trial that raised it once: the same line is executed again, by
the same run, or the same attempt of a task. Lines whose errors are handled in the same place stand for each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ...faults import format_action, format_fault
from .limits import tries
from .points import FAIL, Question, SweepPoint, dies_behind, has_next
from .starts import Struck
from .trace import Event, Line, around, executions, line_of

WHO = ("run", "stage", "partition", "attempt")

Retried = dict[tuple[Line, str], SweepPoint]
"""A point for each line that handled an error, and each error."""


def noting_retries(struck: Iterable[Struck], noted: Retried) -> Iterator[Struck]:
    """``struck`` as it is; those that another try followed are noted, so that no journal has to be read twice."""
    for point, journal in struck:
        if point.plan.faults[0].actions[0].name == FAIL.name and (handler := tried_again(point, journal)):
            noted[handler, str(point.plan.faults[0].actions[0].arguments.get("error"))] = point
        yield point, journal


def tried_again(point: SweepPoint, journal: Sequence[Event]) -> Line | None:
    """The line that was executed behind the error; None if the struck one did not come again."""
    assert point.batch is not None  # a line that shows a recovery is executed in one
    _, after = around(format_fault(point.plan.faults[0]), journal)
    by = [after[0]["point"].get(name) for name in WHO]
    lines = [line_of(event) for event in executions(after, point.batch) if [event.get(name) for name in WHO] == by]
    return lines[0] if point.at in lines else None


def retries(question: Question, noted: Retried) -> Iterator[SweepPoint]:
    """The same error several times in a row; and with the driver's death behind the batch: what is given up may be
    kept for the next one."""
    for point in noted.values():
        again = again_and_again(point, tries(question))
        yield again
        assert point.batch is not None  # as above
        if has_next(question, point.batch):
            yield dies_behind(again)


def again_and_again(point: SweepPoint, times: int) -> SweepPoint:
    """A point's only action, so many times in a row."""
    (fault,) = point.plan.faults
    (action,) = fault.actions
    again = replace(action, arguments={**action.arguments, "times": times})
    plan = replace(point.plan, faults=(replace(fault, actions=(again,)),))
    return replace(point, action=format_action(again), way="", plan=plan)
