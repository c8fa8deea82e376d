"""Second crashes in the recovery from a batch that is half written.

Which code runs after a fault at a line shows only in the trial that strikes there: its journal has every line that was
executed. What neither the reference nor the traced replay ran becomes a plan of two faults. Several crashes lead to the
same code: those with the least and with the most done before them stand for all. What is left behind by a crash may
depend on how tasks took turns, so that one of the two may not come as far again: then the other stands for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from ...faults import Fault, Plan, Point, format_action, format_fault
from .lines import line_point, new_ways
from .points import FAIL, KILL, Question, SweepPoint
from .trace import Event, Line, Step, Way, around, executions, ways_to

DETAIL = "after a fault at {step}"


def shows_a_recovery(point: SweepPoint) -> bool:
    """Whether the trial of this point is to report every line: what comes after its fault may run nowhere else."""
    if not isinstance(point.at, Line) or point.batch is None or len(point.plan.faults) > 1:
        return False
    return point.plan.faults[0].actions[0].name in (KILL.name, FAIL.name)


@dataclass(frozen=True)
class _Second:
    """Where a second fault may strike: the nth of ``count`` executions of the line to which a way leads, after the
    fault of ``point``, before which ``done`` lines were executed in the batch."""

    point: SweepPoint
    way: Way
    nth: int
    count: int
    done: int


def recoveries(question: Question, struck: Iterable[tuple[SweepPoint, Sequence[Event]]]) -> Iterator[SweepPoint]:
    """The points that the journals of struck ones show: at each line to which a new way leads after a driver's death,
    and at each new line after an error."""
    known = _known(question)
    lines = {line for _, line in known}
    found: dict[tuple[bool, Way], list[_Second]] = {}
    for point, journal in struck:
        killed = point.plan.faults[0].actions == (KILL,)
        for second in _seconds(point, journal, known):
            way = second.way if killed else (None, second.way[1])
            if killed or way[1] not in lines:
                found.setdefault((killed, way), []).append(second)
    for seconds in found.values():
        least, most = min(seconds, key=attrgetter("done")), max(seconds, key=attrgetter("done"))
        for second in [least] if least == most else [least, most]:
            yield replace(_planned(second), way=f"{_ways_end(second)} after {'a kill' if killed else 'an error'}")


def _seconds(point: SweepPoint, journal: Sequence[Event], known: set[Way]) -> Iterator[_Second]:
    before, after = _around(point.plan.faults[0], journal, point.batch)
    for way, nth, count in new_ways(before, after, known):
        yield _Second(point, way, nth, count, len(before))


def _known(question: Question) -> set[Way]:
    """The ways of both traces, each run of each batch for itself."""
    found: set[Way] = set()
    for batch in question.roles.values():
        found |= {*ways_to(executions(question.trace, batch)), *ways_to(executions(question.replay, batch))}
    return found


def _around(first: Fault, journal: Sequence[Event], batch: int | None) -> tuple[list[Event], list[Event]]:
    """The lines that were executed in the batch up to the fault, and after it."""
    assert batch is not None  # a line is executed in one
    before, after = around(format_fault(first), journal)
    return executions(before, batch), executions(after, batch)


def _ways_end(second: _Second) -> str:
    """The way, by its two lines."""
    return " to ".join(str(line or "the end") for line in second.way)


def _planned(second: _Second) -> SweepPoint:
    point, line = second.point, second.way[1]
    (first,) = point.plan.faults
    detail = DETAIL.format(step=point.step)
    assert point.batch is not None
    if line is not None:
        return line_point(line, second.nth, second.count, KILL, point.role, point.batch, first, detail)
    end = Fault(Point("sink.write", "after", {"batch": point.batch}), (KILL,))
    plan = Plan((first, end))
    return SweepPoint(Step("sink.write", "after"), format_action(KILL), point.role, point.batch, plan, detail)
