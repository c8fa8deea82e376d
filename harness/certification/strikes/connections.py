"""Connections that end while nothing is on its way, as where a server or a firewall ends idle ones: a client that opens
another one by itself, and goes on there, has left behind what belonged to the first: a transaction that was begun on
it, what was queued, watched or locked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from ....faults import Action, Fault, Plan, format_action
from ....faults.protocols import protocol_of
from ..points import Question, SweepPoint, end_of, evenly, line_at
from ..roles import MIDDLE
from ..trace import Event, Line, driver_lines, line_of
from ._declaration import Strike
from ._zombies import paused

AT_MOST = 6
"""Lines, evenly between the first and the last."""
AT_MOST_REPLACED = 3
"""Of those that open another connection: such a trial takes half a minute and more."""

Connection = tuple[str, str]
"""The service, and the name of a connection to it."""


def ended_connections(question: Question) -> Iterator[SweepPoint]:
    """In the middle batch, before lines that may change something, while a connection of theirs is open."""
    batch = question.middle
    found = [(line, service) for line, service in connected(question.trace, batch) if question.code.acts(line)]
    for line, service in evenly(found, AT_MOST):
        reset = _reset(service)
        plan = Plan((Fault(line_at(line, batch, 1), (reset,)),))
        yield SweepPoint(line, format_action(reset), MIDDLE, batch, plan, "between two requests")


def ended_and_replaced(question: Question) -> Iterator[SweepPoint]:
    """In the middle batch, before lines of the driver that open another connection beside one that is open. It stands
    still there until another driver has its batch: a lock of the first connection's is free by then, and what it goes
    on with on the new one is kept from nobody."""
    batch, detail = question.middle, ", its connections ended"
    on_driver = {*driver_lines(question.trace, batch)}
    found = [(line, service) for line, service in opening(question.trace, batch) if line in on_driver]
    for line, service in evenly(found, AT_MOST_REPLACED):
        yield paused(line, line_at(line, batch, 1), MIDDLE, batch, end_of(batch), detail, first=(_reset(service),))


def _reset(service: str) -> Action:
    return Action("reset", None, {"service": service})


def opening(trace: Sequence[Event], batch: int) -> list[tuple[Line, str]]:
    """The lines of the batch at which their process has a connection to a service, and opens another one before its
    next line."""
    at: dict[object, Line] = {}
    found: dict[tuple[Line, str], None] = {}
    for event, mine in _with_what_is_open(trace):
        process = event.get("process")
        if event["event"] == "connection.opened" and process in at and event["service"] in _services(mine):
            found[at[process], event["service"]] = None
        elif _is_line(event):
            at.pop(process, None)
            if event.get("batch") == batch:
                at[process] = line_of(event)
    return [*found]


def connected(trace: Sequence[Event], batch: int) -> list[tuple[Line, str]]:
    """The lines at whose first execution in the batch their process has a connection to a service, which is still open
    at the process's next line: of those to which it matters by which one a request comes."""
    met: set[Line] = set()
    waiting: dict[object, tuple[Line, frozenset[Connection]]] = {}
    found: list[tuple[Line, str]] = []
    for event, mine in _with_what_is_open(trace):
        if not _is_line(event):
            continue
        process = event.get("process")
        if process in waiting:
            line, had = waiting.pop(process)
            found += [(line, service) for service in sorted(_services(had & mine))]
        if event.get("batch") == batch and (this := line_of(event)) not in met:
            met.add(this)
            waiting[process] = this, frozenset(mine)
    return found


def _services(connections: Set[Connection]) -> set[str]:
    return {service for service, _ in connections}


def _is_line(event: Event) -> bool:
    return bool(event["event"] == "point" and event["phase"] == "line")


def _with_what_is_open(trace: Sequence[Event]) -> Iterator[tuple[Event, Set[Connection]]]:
    """Each event, with the connections that its process has before it, of services to which it matters by which one a
    request comes."""
    opened: dict[object, set[Connection]] = {}
    for event in trace:
        mine = opened.setdefault(event.get("process"), set())
        yield event, mine
        if event["event"] == "connection.opened" and protocol_of(event["service"]).sessions:
            mine.add((event["service"], event["connection"]))
        elif event["event"] == "connection.closed":
            mine.discard((event["service"], event["connection"]))


STRIKE = Strike(68, (ended_connections, ended_and_replaced))
