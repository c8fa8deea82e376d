"""The network between the cluster's machines: what a plan cuts, and what heals it again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..environments.base import EffectError, Environment
from .endings import Endings

Record = Callable[[str, Mapping[str, Any]], None]


@dataclass(frozen=True)
class Cut:
    """The ``machine`` of ``process``, which is the cluster's ``target``, is cut off from ``peer``.

    Machines are ``broker1``, ``worker2`` and so on; a ``peer`` of None is every other one.
    """

    target: str
    process: str
    machine: str
    peer: str | None

    def __str__(self) -> str:
        return f"{self.machine} from {self.peer or 'every other machine'}"

    def shares_a_link_with(self, other: Cut) -> bool:
        """Whether the healing of one would end a part of the other."""
        if self.peer is None and other.peer is None:
            return True
        if self.peer is None or other.peer is None:
            everything, link = (self, other) if self.peer is None else (other, self)
            return everything.machine in (link.machine, link.peer)
        return {self.machine, self.peer} == {other.machine, other.peer}

    def as_fields(self) -> dict[str, Any]:
        """As the journal names it."""
        return {"target": self.target, "process": self.process, "peer": self.peer}


@dataclass
class Network:
    """The network of a trial's environment."""

    environment: Environment
    record: Record
    _cuts: list[Cut] = field(default_factory=list)
    _healings: Endings = field(default_factory=Endings)
    _failures: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def cut(self, cut: Cut, seconds: float) -> str:
        """Returns once nothing passes; healed after ``seconds``. Raises EffectError."""
        with self._lock:
            self._check(cut)
            detail = self.environment.cut(cut.process, cut.peer)
            self._cuts.append(cut)
            self.record("network.cut", cut.as_fields() | {"detail": detail})
            self._healings.after(seconds, partial(self._heal, cut), f"healing of {cut}")
        return detail

    def settle(self, deadline: float) -> list[str]:
        """Heal at once what is still cut; nothing is cut any more. Returns what could not be healed."""
        with self._lock:  # what is being cut just now is healed, too
            self._healings.close()
        hanging = self._healings.join(deadline)
        return self._failures + hanging

    def _check(self, cut: Cut) -> None:
        if self._healings.over:
            raise EffectError(f"{cut} is not cut off: the job has ended")
        if cut.peer == cut.machine:
            raise EffectError(f"{cut} is not a partition: {cut.process} ({cut.target}) runs on that machine itself")
        for other in self._cuts:
            if cut.shares_a_link_with(other):
                raise EffectError(f"{cut} is not cut off: that is a part of another partition, {other}, not healed yet")

    def _heal(self, cut: Cut) -> None:
        try:
            detail = self.environment.heal(cut.process, cut.peer)
        except Exception as error:
            self._failures.append(f"the network of {cut} was not healed: {error}")
            failure = {"part": f"network of {cut}", "detail": str(error)}
            self.record("environment.failure", cut.as_fields() | failure)
        else:
            with self._lock:
                self._cuts.remove(cut)
            self.record("network.healed", cut.as_fields() | {"detail": detail})
