"""What a sink does in some batches only: it compacts in every tenth one, say.

A run of twelve batches without a fault is traced. A line to which a way leads that no batch of the other traces has,
and a kind of request or change of a file that none has, are struck in the first batch that has them: the driver dies
there. New lines fail besides, as those of any batch do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...faults import Fault, Plan, format_action
from .callers import callers_by_line, caught
from .kinds import Kind, kinds_in
from .lines import end_of_batch, fails, known_ways, line_point, new_ways
from .points import KILL, Question, SweepPoint
from .strikes.longer import BATCHES, EDGES, LATE, SETTINGS
from .trace import Event, Line, Step, Way, executions, ways_to

DETAIL = f"in some of {BATCHES} batches"


def in_some_batches(question: Question, journal: Sequence[Event]) -> Iterator[SweepPoint]:
    """The points that the journal of the long run shows."""
    ways = known_ways(question)
    kinds = {kind for batch in question.roles.values() for kind in kinds_in(question, batch)}
    long_run = replace(question, trace=journal, replay=())
    for batch in range(BATCHES):
        ran = executions(journal, batch)
        lines = {line for _, line in ways}
        found = [kind for kind in kinds_in(long_run, batch) if kind not in kinds]
        for point in (*_crashes(ran, batch, ways), *_errors(question, ran, batch, lines), *_around(found, batch)):
            details = ", ".join(filter(None, [point.detail, DETAIL]))
            late = replace(point, plan=replace(point.plan, settings=SETTINGS), detail=details)
            if question.refusal(late.plan) is None:
                yield late
        ways |= {*ways_to(ran)}
        kinds |= {*found}


def comes_in_some_batches(point: SweepPoint) -> bool:
    """Whether only the long run has shown it: it may have come there by chance."""
    return point.detail.endswith(DETAIL)


def _crashes(ran: Sequence[Event], batch: int, ways: set[Way]) -> Iterator[SweepPoint]:
    for (_, line), nth, count in new_ways((), ran, ways):
        yield line_point(line, nth, count, KILL, LATE, batch) if line else end_of_batch(LATE, batch)


def _errors(question: Question, ran: Sequence[Event], batch: int, known: set[Line | None]) -> Iterator[SweepPoint]:
    for line, callers in callers_by_line(ran).items():
        if line not in known:
            errors = caught(line, callers, question.code.errors)
            for action in fails(question.code, line, [*errors]):
                nth = errors.get(str(action.arguments.get("error")), 1)
                yield line_point(line, nth, len(callers), action, LATE, batch)


def _around(kinds: Sequence[Kind], batch: int) -> Iterator[SweepPoint]:
    for kind in kinds:
        for edge in EDGES:
            plan = Plan((Fault(kind.point(edge, batch, 1), (KILL,)),))
            yield SweepPoint(Step(kind.phase, edge), format_action(KILL), LATE, batch, plan, kind.shown)
