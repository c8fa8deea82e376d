"""The faults of a plan with their counters, and the points that what was begun waits for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from ...plans import Action, Fault, Moment
from ..catalogue import action_named
from ..matching import Counter
from ..printing import format_fault


@dataclass(frozen=True)
class FaultStatus:
    """What became of a fault so far. ``process`` is the one whose thread reached it (``place:pid``)."""

    index: int
    text: str
    reached: bool = False
    fired: bool = False
    confirmed: bool = False
    error: str | None = None
    process: str | None = None


@dataclass
class ArmedFault:
    """A fault with its counters. ``awaits``: what other faults begin and it ends, by action and target: its point
    counts once all of that has been begun. Its actions are done at ``times`` reports of it in a row. ``over`` is set
    when its actions are done, given up, or never to come; ``held`` is the number of threads that it holds, ``has_held``
    is set once it has held one."""

    index: int
    fault: Fault
    at: Counter | None
    holds: tuple[Counter, ...]
    status: FaultStatus
    over: threading.Event = field(default_factory=threading.Event)
    awaits: frozenset[tuple[str, str | None]] = frozenset()
    times: int = 1
    held: int = 0
    has_held: threading.Event = field(default_factory=threading.Event)


@dataclass
class Awaited:
    """A point for which a paused process or a kept thread waits: ``until P``. ``reached``: it was reported, in time."""

    point: Counter
    seen: threading.Event = field(default_factory=threading.Event)
    acted: threading.Event = field(default_factory=threading.Event)
    reached: bool = False
    given_up: bool = False


@dataclass(frozen=True)
class Matched:
    """What one report sets off: the faults that fire, those that do again what they did before, those whose holds park
    its thread, and the points of an ``until`` that it is."""

    fires: list[ArmedFault]
    again: list[ArmedFault]
    holders: list[ArmedFault]
    awaited: list[Awaited]


def arm(index: int, fault: Fault) -> ArmedFault:
    return ArmedFault(
        index=index,
        fault=fault,
        at=None if isinstance(fault.at, Moment) else Counter(fault.at),
        holds=tuple(map(Counter, fault.holds)),
        status=FaultStatus(index, format_fault(fault)),
        awaits=frozenset(_ended_elsewhere(fault)),
        times=max(map(times_of, fault.actions)),
    )


def times_of(action: Action) -> int:
    """At how many reports of its point in a row an action is done."""
    spec = action_named(action.name)
    return int(spec.value(action, spec.times) or 1) if spec.times else 1


def _ended_elsewhere(fault: Fault) -> Iterator[tuple[str, str | None]]:
    """What the fault's actions end and another fault begins: the action and the target."""
    for action in fault.actions:
        spec = action_named(action.name)
        if spec.follows and not spec.same_fault:
            yield spec.follows, action.target
