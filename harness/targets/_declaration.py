"""What a kind of target declares of itself: what it needs, how a trial gets one, and what it tells when it is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...assertions import Open
from ...faults.protocols import Address
from ..environments.base import Addresses, Side
from ..errors import ObservationError

SIDES: tuple[Side, ...] = ("harness", "job")


@dataclass(frozen=True)
class Location:
    """Where a trial has its targets.

    ``name`` is unique for each trial, and safe as the name of a table or topic. ``partitions`` is the number of the
    source's, ``copies`` that of each topic's on brokers (None: as the brokers make them). ``directory`` is the trial's
    own, under one path for driver, executors and harness: what a kind makes in it has a name of its own there.
    """

    name: str
    partitions: int
    directory: Path
    addresses: Mapping[Side, Addresses]
    copies: int | None = None

    def address(self, service: str, side: Side = "harness") -> str:
        """Where a service of the environment is found from one side. Raises ObservationError if it is nowhere."""
        found = getattr(self.addresses[side], service, None)
        if found is None:
            raise ObservationError(f"the environment has no address of {service}: it is not a target's service")
        return str(found)


Fields = Mapping[Side, Mapping[str, Any]]
"""Fields of the sink's ``target`` by name, rendered for each side; values are JSON."""


@dataclass(frozen=True)
class Endpoint:
    """How to put a proxy in front of a service: ``of`` says to which hosts and ports an address leads, ``moved`` makes
    it lead to as many others."""

    of: Callable[[str], Sequence[Address]]
    moved: Callable[[str, Sequence[Address]], str]


@dataclass(frozen=True)
class Target:
    """A kind of target: what sinks name in SERVICES. Every function of it is given the trial's :class:`Location`.

    ``create`` makes an empty target and returns the values of its ``fields``, which are None for sinks that did not ask
    for it. ``drop`` removes it, whatever still holds it. ``service`` is what the environment has to provide for it, if
    anything; ``variables`` are set in the environment of the process that runs the sink's prepare, read and cleanup.

    ``read``: what a reader sees, as a table of the given schema, within so many seconds; for sinks without a function
    of that name. ``raw``: the rows that lie there by their place, in words; of rows that have columns only those with
    the given one, the key's first.

    Asked once the job has ended, and answered in one sentence each: ``unsettled``, why readers do not get all that was
    written (if it is for a transaction that ``open`` gives, that is told instead), and ``sessions``, which clients are
    still connected and may write; those of the sink's prepare and read may be among them. ``open``: transactions
    that nobody has ended, of this kind's name; ``abort`` ends one of them. While the job is under way, a kind that says
    what is ``unsettled`` is asked for what is ``open`` only if something is.

    ``endpoint``: for a service whose protocol is known (:mod:`onceproof.faults.protocols`, by the service's name).

    ``errors`` are its client's: they mean that the target did not answer, as ObservationError does.
    """

    create: Callable[[Location], Fields]
    fields: tuple[str, ...]
    service: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    read: Callable[[Location, pa.Schema, float], pa.Table] | None = None
    raw: Callable[[Location, str], Mapping[str, int]] | None = None
    unsettled: Callable[[Location], list[str]] | None = None
    sessions: Callable[[Location], list[str]] | None = None
    open: Callable[[Location], list[Open]] | None = None
    abort: Callable[[Location, Open], None] | None = None
    drop: Callable[[Location], None] | None = None
    endpoint: Endpoint | None = None
    errors: tuple[type[Exception], ...] = ()


def check_target(name: str, target: object) -> Target:
    """The declaration, if it can be used. Raises TypeError, one line, which names what it lacks."""
    if not isinstance(target, Target):
        raise TypeError(f"target {name} declares {target!r} in the place of a Target")
    if target.open and not target.abort:
        raise TypeError(f"target {name} says what is open, and declares no abort")
    return target
