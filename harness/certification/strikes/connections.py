"""Connections that end while nothing is on its way, as where a server or a firewall ends idle ones: a client that opens
another one by itself, and goes on there, has left behind what belonged to the first: a transaction that was begun on
it, what was queued, watched or locked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....faults import Action, Fault, Plan, format_action
from ....faults.protocols import protocol_of
from ..points import Question, SweepPoint, evenly, line_at
from ..roles import MIDDLE
from ..trace import Event, Line, line_of
from ._declaration import Strike

AT_MOST = 6
"""Lines, evenly between the first and the last."""

Connection = tuple[str, str]
"""The service, and the name of a connection to it."""


def ended_connections(question: Question) -> Iterator[SweepPoint]:
    """In the middle batch, before lines that may change something, while a connection of theirs is open."""
    batch = question.middle
    found = [(line, service) for line, service in connected(question.trace, batch) if question.code.acts(line)]
    for line, service in evenly(found, AT_MOST):
        reset = Action("reset", None, {"service": service})
        plan = Plan((Fault(line_at(line, batch, 1), (reset,)),))
        yield SweepPoint(line, format_action(reset), MIDDLE, batch, plan, "between two requests")


def connected(trace: Sequence[Event], batch: int) -> list[tuple[Line, str]]:
    """The lines at whose first execution in the batch their process has a connection to a service, which is still open
    at the process's next line: of those to which it matters by which one a request comes."""
    opened: dict[object, set[Connection]] = {}
    met: set[Line] = set()
    waiting: dict[object, tuple[Line, frozenset[Connection]]] = {}
    found: list[tuple[Line, str]] = []
    for event in trace:
        process = event.get("process")
        mine = opened.setdefault(process, set())
        if event["event"] == "connection.opened" and protocol_of(event["service"]).sessions:
            mine.add((event["service"], event["connection"]))
        elif event["event"] == "connection.closed":
            mine.discard((event["service"], event["connection"]))
        elif event["event"] == "point" and event["phase"] == "line":
            if process in waiting:
                line, had = waiting.pop(process)
                found += [(line, service) for service in sorted({service for service, _ in had & mine})]
            if event.get("batch") == batch and (this := line_of(event)) not in met:
                met.add(this)
                waiting[process] = this, frozenset(mine)
    return found


STRIKE = Strike(68, (ended_connections,))
