"""Second crashes in the recovery from a batch that is half written.

Which code runs after a fault at a line shows only in the trial that strikes there: its journal has every line that was
executed. What neither the reference nor the traced replay ran becomes a plan of two faults, once each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...faults import Fault, Plan, Point, format_action, format_fault
from .lines import line_point, new_lines
from .points import KILL, Question, SweepPoint
from .trace import Event, Line, Step, Way, executions, ways_to

DETAIL = "after a fault at {step}"


def shows_a_recovery(point: SweepPoint) -> bool:
    """Whether the trial of this point is to report every line: what comes after its fault may run nowhere else."""
    return isinstance(point.at, Line) and len(point.plan.faults) == 1


def recoveries(question: Question, struck: Iterable[tuple[SweepPoint, Sequence[Event]]]) -> Iterator[SweepPoint]:
    """The points that the journals of struck ones show: at each line to which a new way leads after a driver's death,
    and at each new line after an error."""
    ways = _known(question)
    lines = {way[1] for way in ways}
    for point, journal in struck:
        (first,) = point.plan.faults
        before, after = _around(first, journal, point.batch)
        killed = first.actions == (KILL,)
        for line, nth, count in new_lines(before, after, ways if killed else set(ways)):
            if killed or line not in lines:
                yield _second(point, first, line, nth, count)
            lines.add(line)


def _known(question: Question) -> set[Way]:
    """The ways of both traces, each run of each batch for itself."""
    found: set[Way] = set()
    for batch in question.roles.values():
        found |= {*ways_to(executions(question.trace, batch)), *ways_to(executions(question.replay, batch))}
    return found


def _around(first: Fault, journal: Sequence[Event], batch: int | None) -> tuple[list[Event], list[Event]]:
    """The lines that were executed in the batch up to the fault, and after it."""
    text = format_fault(first)
    place = next(
        (index for index, event in enumerate(journal) if event["event"] == "fault.reached" and event["text"] == text),
        len(journal),
    )
    assert batch is not None  # a line is executed in one
    return executions(journal[:place], batch), executions(journal[place:], batch)


def _second(point: SweepPoint, first: Fault, line: Line | None, nth: int, count: int) -> SweepPoint:
    detail = DETAIL.format(step=point.step)
    assert point.batch is not None
    if line is not None:
        return line_point(line, nth, count, KILL, point.role, point.batch, first, detail)
    end = Fault(Point("sink.write", "after", {"batch": point.batch}), (KILL,))
    return SweepPoint(
        Step("sink.write", "after"), format_action(KILL), point.role, point.batch, Plan((first, end)), detail
    )
