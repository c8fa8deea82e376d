"""What a phase and an action declare of themselves: the words of the plan language come from these declarations.

A family of phases is a file in ``phases/`` with a tuple ``PHASES``; an action is a file in ``actions/`` with an
``ACTION``. :mod:`.catalogue` finds them by listing the two packages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .model import Edge, Value

Place = Literal["driver", "executor", "broker", "python"]
Sinks = Literal["every", "v2", "kafka-transactions", "python"]
Kind = Literal["number", "text", "duration", "class"]

PLACES: dict[Place, str] = {
    "driver": "driver JVM",
    "executor": "executor JVM",
    "broker": "broker",
    "python": "Python",
}
"""The process whose thread is stopped at a phase; ``python`` is the sink's own code on the driver's machine."""

SINKS: dict[Sinks, str] = {
    "every": "every sink",
    "v2": "V2 sinks",
    "kafka-transactions": "sinks with Kafka transactions",
    "python": "sinks whose Python code runs in a batch",
}


@dataclass(frozen=True)
class Parameter:
    """A selector of a phase (``batch=1``) or an argument of an action (``after=2s``).

    ``kind`` says how its value is written: a whole number of at least ``minimum``, text (bare or quoted; one of
    ``choices`` if there are any), a duration (``300ms``, ``2s``, ``1.5s``, ``2m``; in seconds as a float once read), or
    the dotted name of a Python class. ``default`` holds where it is left out.
    """

    name: str
    kind: Kind
    meaning: str
    minimum: int = 0
    choices: tuple[str, ...] = ()
    required: bool = False
    default: Value | None = None


@dataclass(frozen=True)
class Phase:
    """A named step of the commit protocol.

    ``edges`` is empty for a line. ``selectors`` are in the order in which they are printed. ``two_phase`` is the step's
    name in the words of two-phase commit, ``source`` the class and method whose call it is. ``step`` orders the
    catalogue along the protocol. ``serves_worker``: a Python worker serves the task that is parked here, if the sink
    has Python code in its tasks.
    """

    name: str
    edges: tuple[Edge, ...]
    selectors: tuple[Parameter, ...]
    where: Place
    sinks: Sinks
    meaning: str
    two_phase: str
    source: str
    step: int
    serves_worker: bool = False


@dataclass(frozen=True)
class ActionSpec:
    """What can be done while a thread is stopped at a point.

    ``targets`` is empty for an action on the stopped thread itself. ``positional`` names the argument that may be
    written without its name. Of ``exactly_one``, which may name ``until`` besides arguments, one must be given.
    ``places`` are those in which a thread may be stopped for it; ``moment`` says whether it can be done ``at(3s)``,
    where no thread is stopped. ``follows`` is the action on the same target that must come before it:
    in the same fault if ``same_fault``, else anywhere in the plan. ``network`` says that it acts on the network between
    machines, which only some environments have.
    """

    name: str
    meaning: str
    example: str
    targets: tuple[str, ...] = ()
    arguments: tuple[Parameter, ...] = ()
    positional: str | None = None
    exactly_one: tuple[str, ...] = ()
    places: tuple[Place, ...] = ("driver", "executor", "broker", "python")
    moment: bool = True
    follows: str | None = None
    same_fault: bool = False
    network: bool = False

    @property
    def takes_until(self) -> bool:
        """Whether ``until POINT`` may follow the action."""
        return "until" in self.exactly_one
