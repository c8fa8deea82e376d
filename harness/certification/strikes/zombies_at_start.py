"""A driver that is taken for dead before its query starts, and comes back when its successor has done two batches: what
it has found out by then of what is published, prepared or left over is old, and it may remove what was done since.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....faults import Fault, Point
from ..points import ANY_BATCH, Question, SweepPoint, crash_in, end_of, evenly
from ..starts import AGAIN, FIRST, again, start_line, starts_in_the_replay, starts_of
from ..trace import Event, Line, line_of
from ._declaration import Strike
from ._zombies import next_or_last, paused

AT_MOST = 4
"""Lines of a start, evenly, the first and the last among these."""


def at_start(question: Question) -> Iterator[SweepPoint]:
    """In the first start, and in the one after the crash of the middle batch at lines that are new there."""
    for start in starts_of(question.trace)[:1]:
        for line in evenly(_informed(question, start), AT_MOST):
            yield _point(question, line, start_line(line, 1), question.roles[question.first_role], FIRST)
    first, later = starts_in_the_replay(question)
    known, batch = set(map(line_of, first)), question.middle
    new = [line for line in _informed(question, later.get(batch, ())) if line not in known]
    for line in evenly(new, AT_MOST):
        yield _point(question, line, again(line, 1, first), batch, AGAIN, crash_in(batch))


def _point(question: Question, line: Line, at: Point, batch: int, detail: str, *before: Fault) -> SweepPoint:
    until = end_of(next_or_last(question, batch))
    return paused(line, at, ANY_BATCH, None, until, f" {detail}", before=before)


def _informed(question: Question, start: Sequence[Event]) -> list[Line]:
    """The statements of a start that call something, and before which another one did. Not the last one: behind it the
    query begins, and what comes late then is struck in batches."""
    lines = dict.fromkeys(map(line_of, start[:-1]))
    calling = [line for line in lines if question.code.begins(line) and question.code.calls(line)]
    return calling[1:]


STRIKE = Strike(69, (at_start,))
