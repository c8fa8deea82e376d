"""The data of a fault plan: where to stop a process, and what to do while it is stopped there.

Everything here is immutable data that faults, assertions and harness share. The text form is parsed and printed by
:mod:`onceproof.faults.language`; the phases and actions that a plan may name are in :mod:`onceproof.faults.catalogue`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Edge = Literal["before", "after"]
Value = str | int | float
NUMBER = "number"
"""The argument of an action that is written in brackets behind its target: ``executor[1]``."""


@dataclass(frozen=True)
class Point:
    """A selector of reported points: ``task.commit:before[batch=1, partition=0]#2``.

    ``where`` holds the selectors, compared with a report's identity (``batch``, ``partition``, ``attempt``, ``row``,
    ``transactional_id``, ``result``). A line phase is ``phase="line"`` with ``file`` (relative to the sink's
    directory) and ``line`` among
    ``where`` and no edge: a line is reported before it is executed.
    ``nth`` counts the matching reports of the whole trial, restarts included, from 1; None is the first.
    """

    phase: str
    edge: Edge | None = None
    where: Mapping[str, Value] = field(default_factory=dict)
    nth: int | None = None


@dataclass(frozen=True)
class Moment:
    """``at(3s)``: seconds after the start of the first driver."""

    seconds: float


@dataclass(frozen=True)
class Action:
    """``kill(driver)``, ``restart(broker, after=2s)``, ``pause(driver) until batch.commit:after[batch=1]``, ``fail``.

    ``target`` is ``driver``, ``executor``, ``worker``, ``node``, ``broker`` or a service, or None for actions on the
    stopped thread itself. Durations among ``arguments`` are floats, in seconds.
    """

    name: str
    target: str | None = None
    arguments: Mapping[str, Value] = field(default_factory=dict)
    until: Point | None = None

    @property
    def on_target(self) -> str:
        """Name and target: ``kill(driver)``, ``kill(executor[1])``, ``fail``."""
        return f"{self.name}({self.numbered_target})" if self.target else self.name

    @property
    def numbered_target(self) -> str:
        """``driver``, ``executor[1]``."""
        return f"{self.target}[{self.arguments[NUMBER]}]" if NUMBER in self.arguments else str(self.target)


@dataclass(frozen=True)
class Fault:
    """At the first report that matches ``at``, do ``actions`` in turn while the reporting thread is stopped.

    ``holds`` park the threads that report a matching point, from the ``nth`` match on, until the actions are done.
    """

    at: Point | Moment
    actions: tuple[Action, ...]
    holds: tuple[Point, ...] = ()


@dataclass(frozen=True)
class Plan:
    """Faults, each of which fires once. ``settings`` are what the trial has besides, by name, as text."""

    faults: tuple[Fault, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ActionReference:
    """An action of a plan by its place: the ``number``-th action of fault number ``fault``, both from 0.

    Each ``fault.*`` event of the journal that concerns an action carries both numbers.
    """

    fault: int
    number: int

    def as_fields(self) -> dict[str, int]:
        """The fields of an event."""
        return {"fault": self.fault, "number": self.number}

    @classmethod
    def of(cls, event: Mapping[str, object]) -> ActionReference | None:
        """The action that an event concerns; None for an event that concerns none."""
        fault, number = event.get("fault"), event.get("number")
        return cls(fault, number) if isinstance(fault, int) and isinstance(number, int) else None

    def find(self, faults: Sequence[Fault]) -> Action | None:
        """The action that it means among a plan's faults; None if they have no such action."""
        actions = faults[self.fault].actions if 0 <= self.fault < len(faults) else ()
        return actions[self.number] if 0 <= self.number < len(actions) else None
