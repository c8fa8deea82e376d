"""What of the sink's code runs before the query starts, in each start of the driver: ``attach``, ``transform``, what
Spark calls of a data source to plan the query.

A first start finds nothing, a later one what a crash has left: there a sink cleans up, takes over or starts afresh. So
each is struck. Crashes differ only by what was done before them, so a point is a statement before which another one of
the same start may have changed something. An error that nothing catches ends the driver as well; those that are caught
let the query start without what was to be done before it, and are points of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from ...faults import Action, Fault, Plan, Point, format_action, format_fault
from .callers import callers_by_line, caught
from .lines import facts_at, fails
from .points import ANY_BATCH, KILL, Gap, Question, SweepPoint, crash_in, under
from .trace import Event, Line, Step, around, executions, line_of

MAIN_THREAD = "MainThread"

Struck = tuple[SweepPoint, Sequence[Event]]
"""A point with the journal of its trial."""

Known = set[tuple[Line | None, str]]
"""Statements of starts (None: the query's start), each with the action that strikes there."""

FIRST = "at the first start"
AGAIN = "at the start after a crash"
LATER = "at the start after a fault at {step}"


def reports_of_starts(journal: Iterable[Event]) -> list[list[Event]]:
    """Of each driver that was started: what was reported before its query did."""
    found: list[list[Event]] = []
    for event in journal:
        if event["event"] == "driver.started":
            found.append([])
        elif found and event["event"] == "point" and event.get("when") == "start":
            found[-1].append(event)
    return found


def starts_of(journal: Iterable[Event]) -> list[list[Event]]:
    """Of each driver that was started: the lines that its main thread ran before its query did, and those of Spark's
    processes for data sources. Threads of the sink's own run as it comes."""
    return [[event for event in start if event.get("thread") == MAIN_THREAD] for start in reports_of_starts(journal)]


def lines_of_starts(journal: Iterable[Event]) -> frozenset[Line]:
    """The lines that ran before a query did."""
    return frozenset(line_of(event) for start in starts_of(journal) for event in start)


def starts(question: Question) -> Iterator[SweepPoint]:
    """The driver dies, or an error is caught, in its first start, and in the one after the crash of a batch; each
    statement once, after the middle batch if it runs there."""
    for start in starts_of(question.trace):
        yield from (_point(start_line(line, 1), KILL, None, FIRST) for line in _separated(question, start) if line)
        yield from (_point(start_line(line, nth), error, None, FIRST) for line, nth, error in _caught(question, start))
    first, later = starts_in_the_replay(question)
    known: Known = set()
    for batch in sorted(later, key=lambda batch: batch != question.middle):
        yield from _after(question, crash_in(batch), first, later[batch], known, AGAIN)


def starts_in_the_replay(
    question: Question, starts: Callable[[Iterable[Event]], list[list[Event]]] = starts_of
) -> tuple[Sequence[Event], Mapping[int, Sequence[Event]]]:
    """The first start, and by batch those after the crash of each role's: their lines, or what ``starts`` reads."""
    first, *later = starts(question.replay) or [[]]
    return first, dict(zip(question.roles.values(), later, strict=False))


def facts_of_starts(question: Question) -> Iterator[Gap]:
    """Exceptions that a start catches, and that state a fact which would not be true."""
    for start in (*starts_of(question.trace), *starts_of(question.replay)):
        yield from facts_at(start, question.code, ANY_BATCH)


def _after(
    question: Question,
    crash: Fault,
    first: Sequence[Event],
    start: Sequence[Event],
    known: Known,
    detail: str,
) -> Iterator[SweepPoint]:
    """The points of a start after ``crash`` that are not ``known`` yet; ``first`` is the first start."""
    found = [(line, 1, KILL) for line in _separated(question, start)] + [*_caught(question, start)]
    for line, nth, action in found:
        if (line, format_action(action)) not in known:
            known.add((line, format_action(action)))
            yield _point(again(line, nth, first), action, crash, detail)


def _caught(question: Question, start: Sequence[Event]) -> Iterator[tuple[Line, int, Action]]:
    """Each exception that the code of a start catches, at the first execution of the line at which it does."""
    for line, callers in callers_by_line(start).items():
        errors = caught(line, callers, question.code.errors)
        for action in fails(question.code, line, [*errors], min(errors.values())) if errors else ():
            yield line, errors[str(action.arguments["error"])], action


def again(line: Line | None, nth: int, first: Sequence[Event]) -> Point:
    """The nth execution of the line that follows those of the first start; None: the query's start."""
    if line is None:
        return Point("query.start", "before", {}, 2)
    return start_line(line, nth + Counter(map(line_of, first))[line])


def start_line(line: Line, nth: int) -> Point:
    return Point("line", None, {"file": line.file, "line": line.line, "when": "start"}, nth)


def _point(at: Point, action: Action, before: Fault | None, detail: str) -> SweepPoint:
    """A place outside of every batch, after the fault ``before``."""
    plan = Plan((*([before] if before else []), Fault(at, (action,))))
    return SweepPoint(_place(at), format_action(action), ANY_BATCH, None, plan, detail, alone=True)


def _place(at: Point) -> Step | Line:
    if at.phase == "line":
        return Line(str(at.where["file"]), int(at.where["line"]))
    return Step(at.phase, at.edge or "")


@dataclass(frozen=True)
class Crash:
    """A driver's death at a line of a batch. ``first`` is what the first start ran, ``again`` what the one after the
    death ran; ``recovery`` are the lines that were executed from then on, there and in the batch; ``done`` is how many
    the batch had executed before."""

    point: SweepPoint
    first: Sequence[Event]
    again: Sequence[Event]
    recovery: frozenset[Line]
    done: int


def noting_crashes(struck: Iterable[Struck], noted: list[Crash]) -> Iterator[Struck]:
    """``struck`` as it is; what :func:`later_starts` needs of it is noted, so that no journal has to be read twice."""
    for point, journal in struck:
        if point.plan.faults[0].actions == (KILL,):
            noted.append(_crash(point, journal))
        yield point, journal


def _crash(point: SweepPoint, journal: Sequence[Event]) -> Crash:
    before, after = around(format_fault(point.plan.faults[0]), journal)
    assert point.batch is not None  # a line that shows a recovery is executed in one
    again = next(iter(starts_of(after)), [])
    recovery = frozenset(map(line_of, [*again, *executions(after, point.batch)]))
    return Crash(point, starts_of(before)[0], again, recovery, len(executions(before, point.batch)))


def later_starts(question: Question, crashes: Iterable[Crash]) -> Iterator[SweepPoint]:
    """The same for the starts after a batch that is half written: what they find there, no other start does.

    How far a batch was written shows in the lines that its recovery runs. Of the crashes with the same recovery those
    with the least and with the most done before them stand for all.
    """
    alike: dict[frozenset[Line], list[Crash]] = {}
    for crash in crashes:
        alike.setdefault(crash.recovery, []).append(crash)
    for group in alike.values():
        least, most = min(group, key=attrgetter("done")), max(group, key=attrgetter("done"))
        for crash in [least] if least is most else [least, most]:
            fault, detail = crash.point.plan.faults[0], LATER.format(step=crash.point.step)
            for point in _after(question, fault, crash.first, crash.again, set(), detail):
                yield under(crash.point.plan.settings, point)


def _separated(question: Question, start: Sequence[Event]) -> Iterator[Line | None]:
    """The statements of a start before which something was done that is not before the one above, at their first
    execution; None for the query's start, if it is one of several."""
    acted = several = False
    known: set[Line] = set()
    for line in map(line_of, start):
        if acted and line not in known and question.code.begins(line):
            acted, several = False, True
            yield line
        known.add(line)
        acted = acted or question.code.acts(line)
    if acted and several:
        yield None
