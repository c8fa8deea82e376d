"""By whom a line of the sink's code was called at each of its executions, and what is caught there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from .trace import Event, Line, line_of

Callers = tuple[Line, ...]
"""The sink's lines further up the stack, the innermost first."""


def callers_of(event: Event) -> Callers:
    """The callers that a line's report names; none where only chosen lines are reported."""
    named = [place.rpartition(":") for place in event.get("callers", "").split(",") if place]
    return tuple(Line(file, int(line)) for file, _, line in named)


def callers_by_line(executions: Iterable[Event]) -> dict[Line, list[Callers]]:
    """Of each line, its callers at its first execution, its second and so on."""
    found: dict[Line, list[Callers]] = {}
    for event in executions:
        found.setdefault(line_of(event), []).append(callers_of(event))
    return found


def caught(line: Line, callers: Sequence[Callers], errors: Callable[[Sequence[Line]], Sequence[str]]) -> dict[str, int]:
    """Each exception class that is caught where the line is executed, with the first execution at which it is, from 1.

    ``callers`` are those of each execution in turn; ``errors`` gives the classes that a line and its callers catch.
    """
    first: dict[Callers, int] = {}
    for nth, above in enumerate(callers, 1):
        first.setdefault(above, nth)
    found: dict[str, int] = {}
    for above, nth in first.items():
        for error in errors([line, *above]):
            found.setdefault(error, nth)
    return found
