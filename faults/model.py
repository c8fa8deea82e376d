"""The data of a fault plan: where to stop a process, and what to do while it is stopped there.

Everything here is immutable and holds no behaviour besides validation of its own form. The text form is parsed and
printed by :mod:`.language`; the phases that a selector may name are in :mod:`.catalogue`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Edge = Literal["before", "after"]
Value = str | int | float


@dataclass(frozen=True)
class Point:
    """A selector of reported points: ``task.commit:before[batch=1, partition=0]#2``.

    ``where`` holds the selectors, compared with a report's identity (``batch``, ``partition``, ``attempt``, ``row``,
    ``transactional_id``, ``result``). A line phase is ``phase="line"`` with ``file`` (a base name) and ``line`` among
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

    ``target`` is ``driver``, ``executor``, ``worker``, ``node`` or ``broker``, or None for actions on the
    stopped thread itself. Durations among ``arguments`` are floats, in seconds.
    """

    name: str
    target: str | None = None
    arguments: Mapping[str, Value] = field(default_factory=dict)
    until: Point | None = None


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
    """Faults, each of which fires once."""

    faults: tuple[Fault, ...] = ()
