"""What an error that a sink has caught leaves behind for its later batches.

A sink may count a batch as done although it is not, and keep its rows for the next one, in memory or in a place of its
own. Whether it does shows in the trial that raised the error once: the run that was struck goes on to the next batch.
So the driver dies where the batch that was struck ends, as what is in memory is gone then; and in the next one, where
that does what no trace has it do: it takes another way, or executes a line more often.

Errors that are handled by the same line stand for each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ...faults import format_fault
from .lines import known_ways, line_point, new_ways
from .points import AFTER, KILL, Question, SweepPoint, dies_behind, evenly, under
from .recoveries import kills, was_done
from .starts import Struck
from .trace import WORKER, Event, Line, Way, around, executed, executions, line_of, ways_to

Behind = dict[object, SweepPoint]
"""A point for each handler of errors, and for each line that a later batch executes because of them."""

AT_MOST = 6
"""Lines of a later batch, the first and the last among these."""


def noting_left_behind(question: Question, struck: Iterable[Struck], noted: Behind) -> Iterator[Struck]:
    """``struck`` as it is; the points that it shows are noted, so that no journal has to be read twice."""
    ways = known_ways(question)
    for point, journal in struck:
        for stands_for, second in () if kills(point) else _behind(question, ways, point, journal):
            noted.setdefault(stands_for, second)
        yield point, journal


def _behind(
    question: Question, ways: set[Way], point: SweepPoint, journal: Sequence[Event]
) -> Iterator[tuple[object, SweepPoint]]:
    (first,) = point.plan.faults
    assert point.batch is not None  # what shows a recovery is struck in one
    before, after = around(format_fault(first), journal)
    run = after[0]["point"].get("run") if after else None
    later = executions(after, point.batch + 1, run)
    if run is None or not later:
        return
    handled = executions(after, point.batch, run)
    handler = next((way for way, _, _ in new_ways(executions(before, point.batch), handled, ways)), None)
    done = was_done(point)
    yield ("end", handler, done), dies_behind(point)
    if _is_struck(after, point.batch + 1):
        return  # by another point that shares the run: what the batch does follows from that
    detail = AFTER.format(step=point.step) + ", in the batch before"
    for line, nth, count in _more(question, ways, later, point.batch + 1):
        second = line_point(line, nth, count, KILL, point.role, point.batch + 1, first, detail)
        yield (line, done), replace(under(point.plan.settings, second), alone=True, seen_once=True)


def _is_struck(journal: Iterable[Event], batch: int) -> bool:
    return any(one["event"] == "fault.reached" and one["point"].get("batch") == batch for one in journal)


def _more(question: Question, ways: set[Way], later: Sequence[Event], batch: int) -> Sequence[tuple[Line, int, int]]:
    """Each line of a batch that is come to by a new way, or more often than in the reference trace: which execution of
    it that is, and how many there are. In tasks, how often a line is executed depends on their rows."""
    usual = executed(question.trace, batch).lines
    old = {*ways, *ways_to(executions(question.trace, batch))}
    counts = Counter(map(line_of, later))
    in_tasks = {line_of(event) for event in later if event.get("role") == WORKER}
    found = {line: nth for (_, line), nth, _ in new_ways((), later, old) if line}
    for line in counts.keys() - in_tasks:
        if counts[line] > usual.get(line, 0):
            found.setdefault(line, usual.get(line, 0) + 1)
    return evenly([(line, nth, counts[line]) for line, nth in sorted(found.items())], AT_MOST)
