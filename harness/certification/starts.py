"""What of the sink's code runs before the query starts, in each start of the driver: ``attach``, ``transform``, what
Spark calls of a data source to plan the query.

A first start finds nothing, a later one what a crash has left: there a sink cleans up, takes over or starts afresh. So
each is struck. Crashes differ only by what was done before them, so a point is a statement before which another one of
the same start has called something.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...faults import Fault, Plan, Point, format_action, format_fault
from .points import ANY_BATCH, CRASH, KILL, Question, SweepPoint
from .roles import MIDDLE
from .trace import Event, Line, Step, line_of

MAIN_THREAD = "MainThread"

ABOUT_STARTS = frozenset({"driver.started", "fault.reached"})
"""The events that tell the starts of a journal from each other, and those before a fault from those after it."""

Struck = tuple[SweepPoint, Sequence[Event]]
"""A point with the journal of its trial."""

FIRST = "at the first start"
AGAIN = "at the start after a crash"
LATER = "at the start after a fault at {step}"


def starts_of(journal: Iterable[Event]) -> list[list[Event]]:
    """Of each driver that was started: the lines that its main thread ran before its query did, and those of Spark's
    processes for data sources. Threads of the sink's own run as it comes."""
    found: list[list[Event]] = []
    for event in journal:
        if event["event"] == "driver.started":
            found.append([])
        elif event["event"] == "point" and event.get("when") == "start" and event.get("thread") == MAIN_THREAD:
            found[-1].append(event)
    return found


def lines_of_starts(journal: Iterable[Event]) -> frozenset[Line]:
    """The lines that ran before a query did."""
    return frozenset(line_of(event) for start in starts_of(journal) for event in start)


def starts(question: Question) -> Iterator[SweepPoint]:
    """The driver dies in its first start, and in the one after the crash of a batch; each statement once, after the
    middle batch if it runs there."""
    for start in starts_of(question.trace):
        yield from (_point(_line(line, 1), None, FIRST) for line in _separated(question, start) if line)
    first, *later = starts_of(question.replay) or [[]]
    known: set[Line | None] = set()
    crashes = zip(question.roles.items(), later, strict=False)
    for (_, batch), start in sorted(crashes, key=lambda crash: crash[0][0] != MIDDLE):
        crash = Fault(Point(CRASH.phase, CRASH.edge, {"batch": batch}), (KILL,))
        for line in _separated(question, start):
            if line not in known:
                known.add(line)
                yield _point(_again(line, first), crash, AGAIN)


def _again(line: Line | None, first: Sequence[Event]) -> Point:
    """The first execution of the line that follows those of the first start; None: the query's start."""
    if line is None:
        return Point("query.start", "before", {}, 2)
    return _line(line, 1 + sum(line_of(event) == line for event in first))


def _line(line: Line, nth: int) -> Point:
    return Point("line", None, {"file": line.file, "line": line.line, "when": "start"}, nth)


def _point(at: Point, before: Fault | None, detail: str) -> SweepPoint:
    """A place outside of every batch, after the fault ``before``."""
    plan = Plan((*([before] if before else []), Fault(at, (KILL,))))
    return SweepPoint(_place(at), format_action(KILL), ANY_BATCH, None, plan, detail, alone=True)


def _place(at: Point) -> Step | Line:
    if at.phase == "line":
        return Line(str(at.where["file"]), int(at.where["line"]))
    return Step(at.phase, at.edge or "")


def noting_starts(struck: Iterable[Struck], noted: list[Struck]) -> Iterator[Struck]:
    """``struck`` as it is; what :func:`later_starts` needs of it is noted, so that no journal has to be read twice."""
    for point, journal in struck:
        noted.append((point, [event for event in journal if event["event"] in ABOUT_STARTS or "when" in event]))
        yield point, journal


def later_starts(question: Question, struck: Iterable[Struck]) -> Iterator[SweepPoint]:
    """The same for statements that only the starts after other crashes run: what cleans up a batch that is half
    written. ``struck``: points with the journals of their trials."""
    known: set[Line | None] = {*lines_of_starts(question.trace), *lines_of_starts(question.replay), None}
    for point, journal in struck:
        if point.plan.faults[0].actions != (KILL,):
            continue
        first, after = _around(point.plan.faults[0], journal)
        for line in _separated(question, after):
            if line not in known:
                known.add(line)
                yield _point(_again(line, first), point.plan.faults[0], LATER.format(step=point.step))


def _around(fault: Fault, journal: Sequence[Event]) -> tuple[list[Event], list[Event]]:
    """The first start, and the one after the fault: in a plan of its own, that is the second."""
    text = format_fault(fault)
    reached = (at for at, event in enumerate(journal) if event["event"] == "fault.reached" and event["text"] == text)
    later = starts_of(journal[next(reached, len(journal)) :])
    return starts_of(journal)[0], later[0] if later else []


def _separated(question: Question, start: Sequence[Event]) -> Iterator[Line | None]:
    """The statements of a start before which something was called that is not before the one above, at their first
    execution; None for the query's start, if it is one of several."""
    called = several = False
    known: set[Line] = set()
    for line in map(line_of, start):
        if called and line not in known and question.code.begins(line):
            called, several = False, True
            yield line
        known.add(line)
        called = called or question.code.calls(line)
    if called and several:
        yield None
