"""What an error that a sink has caught leaves behind for its later batches.

A sink may count a batch as done although it is not, and keep its rows for the next one, in memory or in a place of its
own. Whether it may shows in the trial that raised the error once: the run that was struck has not tried again, and
commits the batch. So the driver dies behind that batch, as what is in memory is gone then; and in the next one, before
what that does in any case, and where it does more than the reference or goes another way.

It is taken for dead in the next batch, too, also where the sink has tried again: on another connection it may have lost
what fences it off.

Errors that the same line handles stand for each other, by whether what failed had been carried out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ...faults import Fault, format_action, format_fault
from .kinds import FAMILIES, effects_of
from .lines import killed_lines, known_ways, line_point, new_ways
from .points import AFTER_A_FAULT, KILL, Question, SweepPoint, dies_behind, end_of, evenly, has_next, then, under
from .recoveries import kills, was_done
from .refusals import asked_again
from .retries import tried_again
from .starts import Struck
from .strikes._zombies import paused
from .trace import WORKER, Event, Line, Step, Way, around, executed, executions, line_of, ways_to

AT_MOST = 4
"""Requests and changes of files of the next batch, evenly, for each handler of errors."""
AT_MOST_LINES = 6
"""Lines of a next batch, evenly, in a whole sweep."""
AT_MOST_REPLACED = 4
"""Drivers that are taken for dead in a next batch, evenly, in a whole sweep."""


@dataclass
class Behind:
    """The points that were found, by what they stand for."""

    handled: dict[object, Sequence[SweepPoint]] = field(default_factory=dict)
    lines: dict[object, SweepPoint] = field(default_factory=dict)
    replaced: dict[object, Sequence[SweepPoint]] = field(default_factory=dict)

    def points(self) -> list[SweepPoint]:
        replaced = [point for of_one in self.replaced.values() for point in of_one]
        handled = [point for of_one in self.handled.values() for point in of_one]
        return [*handled, *self._lines(), *evenly(replaced, AT_MOST_REPLACED)]

    def _lines(self) -> Sequence[SweepPoint]:
        return evenly(list(self.lines.values()), AT_MOST_LINES)


def noting_left_behind(question: Question, struck: Iterable[Struck], noted: Behind) -> Iterator[Struck]:
    """``struck`` as it is; the points that it shows are noted, so that no journal has to be read twice."""
    ways = known_ways(question)
    for point, journal in struck:
        assert point.batch is not None  # what shows a recovery is struck in one
        if not kills(point) and has_next(question, point.batch):
            _note(question, ways, point, journal, noted)
        yield point, journal


def _note(question: Question, ways: set[Way], point: SweepPoint, journal: Sequence[Event], noted: Behind) -> None:
    assert point.batch is not None  # what shows a recovery is struck in one
    before, after = around(format_fault(point.plan.faults[0]), journal)
    run = after[0]["point"].get("run") if after else None
    if run is None or not _is_committed(after, point.batch, run):
        return
    done = was_done(point)
    handler = _handler(executions(before, point.batch), executions(after, point.batch, run), ways)
    if (handler, done) not in noted.replaced:
        noted.replaced[handler, done] = list(_taken_for_dead(question, point))
    if tried_again(point, journal) or (isinstance(point.at, Step) and asked_again(question, point, journal)):
        return
    if (handler, done) not in noted.handled:
        noted.handled[handler, done] = [dies_behind(point), *_before_effects(question, point)]
    if _is_struck(after, point.batch + 1):
        return  # by another point that shares the run: what the batch does follows from that
    for line, nth, count in _more(question, ways, executions(after, point.batch + 1, run), point.batch + 1):
        noted.lines.setdefault((line, nth == 1, done), _at_line(question, point, line, nth, count))


def _is_committed(journal: Iterable[Event], batch: int, run: str) -> bool:
    """Whether this run has written the batch to the commit log."""
    end = {"event": "point", "phase": "batch.commit", "edge": "after", "batch": batch, "run": run}
    return any(end.items() <= event.items() for event in journal)


def _is_struck(journal: Iterable[Event], batch: int) -> bool:
    return any(one["event"] == "fault.reached" and one["point"].get("batch") == batch for one in journal)


def _handler(before: Sequence[Event], handled: Sequence[Event], ways: set[Way]) -> Way | None:
    """The first way behind the error that no trace has; None where nothing handles it."""
    behind = ways_to([*before, *handled])[len(before) : len(before) + len(handled)]
    return next((way for way in behind if way not in ways), None)


def _before_effects(question: Question, point: SweepPoint) -> Iterator[SweepPoint]:
    """The driver's death before a few of what the next batch does in any case."""
    assert point.batch is not None
    batch = point.batch + 1
    found = [effect for family in FAMILIES for effect in effects_of(question, family, batch)]
    for effect in evenly(found, AT_MOST):
        plan = then(point.plan, Fault(effect.point("before", batch), (KILL,)))
        detail = f"{effect.shown}, {_detail(point)}"
        here = Step(effect.phase, "before")
        second = SweepPoint(here, format_action(KILL), _role(question, point), batch, plan, detail)
        yield replace(second, alone=True, seen_once=True)


def _taken_for_dead(question: Question, point: SweepPoint) -> Iterator[SweepPoint]:
    """The driver stands still before the first and before the last of what the next batch does in any case, until
    another one has done that batch."""
    assert point.batch is not None
    batch, role = point.batch + 1, _role(question, point)
    found = [effect for family in FAMILIES for effect in effects_of(question, family, batch)]
    for effect in evenly(found, 2):
        here, at = Step(effect.phase, "before"), effect.point("before", batch)
        detail = f", {effect.shown}, {_detail(point)}"
        second = paused(here, at, role, batch, end_of(batch), detail, before=point.plan.faults)
        yield replace(under(point.plan.settings, second), seen_once=True)


def _at_line(question: Question, point: SweepPoint, line: Line, nth: int, count: int) -> SweepPoint:
    assert point.batch is not None
    (first,) = point.plan.faults
    role = _role(question, point)
    second = line_point(line, nth, count, KILL, role, point.batch + 1, first, _detail(point))
    return replace(under(point.plan.settings, second), alone=True, seen_once=True)


def _role(question: Question, point: SweepPoint) -> str:
    """Of the next batch; of the struck one where that has none."""
    assert point.batch is not None
    return next((role for role, batch in question.roles.items() if batch == point.batch + 1), point.role)


def _detail(point: SweepPoint) -> str:
    return f"{AFTER_A_FAULT.format(step=point.step)} in the batch before"


def _more(question: Question, ways: set[Way], later: Sequence[Event], batch: int) -> Iterator[tuple[Line, int, int]]:
    """Each line of a batch that is come to by a new way, and the first and the last execution of each that is executed
    more often than in the reference trace: which execution it is, and how many there are. Neither of lines in tasks,
    which depend on their rows, nor of those of a thread that may run them at any time."""
    usual, killed = executed(question.trace, batch).lines, killed_lines(question, batch)
    old = {*ways, *ways_to(executions(question.trace, batch))}
    in_tasks = {line_of(event) for event in later if event.get("role") == WORKER}
    counts = Counter(map(line_of, later))
    found: dict[tuple[Line, int], None] = {(line, nth): None for (_, line), nth, _ in new_ways((), later, old) if line}
    for line in counts:
        if counts[line] > usual.get(line, 0):
            found |= {(line, 1): None, (line, counts[line]): None}
    for line, nth in found:
        steady = killed is None or killed.get(line, 0) == usual.get(line, 0)
        if steady and line not in in_tasks:
            yield line, nth, counts[line]
