"""Connections that end while nothing is on its way, as where a server or a firewall ends idle ones: a client that opens
another one by itself, and goes on there, has left behind what belonged to the first: a transaction that was begun on
it, what was queued, watched or locked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....faults import Action, Fault, Plan, format_action
from ..points import Question, SweepPoint, line_at
from ..roles import MIDDLE
from ..trace import Event, Line, line_of
from ._declaration import Strike
from ._zombies import evenly

RESET = Action("reset")

AT_MOST = 6
"""Lines, evenly between the first and the last."""


def ended_connections(question: Question) -> Iterator[SweepPoint]:
    """In the middle batch, before lines that may change something, while a connection of theirs is open."""
    batch = question.middle
    lines = [line for line in connected(question.trace, batch) if question.code.acts(line)]
    for line in evenly(lines, AT_MOST):
        plan = Plan((Fault(line_at(line, batch, 1), (RESET,)),))
        yield SweepPoint(line, format_action(RESET), MIDDLE, batch, plan, "between two requests")


def connected(trace: Sequence[Event], batch: int) -> list[Line]:
    """The lines at whose first execution in the batch their process has a connection to a service, which is still open
    at the process's next line."""
    opened: dict[object, set[object]] = {}
    met: set[Line] = set()
    waiting: dict[object, tuple[Line, frozenset[object]]] = {}
    found: list[Line] = []
    for event in trace:
        process = event.get("process")
        mine = opened.setdefault(process, set())
        if event["event"] == "connection.opened":
            mine.add(event["connection"])
        elif event["event"] == "connection.closed":
            mine.discard(event["connection"])
        elif event["event"] == "point" and event["phase"] == "line":
            line, had = waiting.pop(process, (None, frozenset()))
            found += [line] if line and had & mine else []
            if event.get("batch") == batch and (this := line_of(event)) not in met:
                met.add(this)
                waiting[process] = this, frozenset(mine)
    return found


STRIKE = Strike(68, (ended_connections,))
