"""What a plan kills and the environment starts again: brokers, servers of targets, and machines of Spark's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..environments.base import EffectError

Record = Callable[[str, Mapping[str, Any]], None]


@dataclass(frozen=True)
class Restartable:
    """A part of the environment, which is the cluster's ``target``, with what kills it and what starts it again.

    ``identity`` is the journal's name for it. ``kill`` returns what died, ``start`` what is ``back`` again: the last
    word of the event that says so.
    """

    target: str
    identity: str | int
    kill: Callable[[], str]
    start: Callable[[], str]
    back: str = "registered"

    def __str__(self) -> str:
        return f"{self.target} {self.identity}" if isinstance(self.identity, int) else self.identity

    def as_fields(self) -> dict[str, Any]:
        """As the journal names it."""
        return {self.target: self.identity}


@dataclass
class Restarts:
    """What is away in a trial. Each part is started again by a thread of its own, at once when the job has ended."""

    record: Record
    _threads: list[threading.Thread] = field(default_factory=list)
    _failures: list[str] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def kill(self, part: Restartable, after: float) -> tuple[str, threading.Thread]:
        """Kill ``part``, which is started again ``after`` seconds; returns what died, and the thread that starts it.

        Raises EffectError.
        """
        with self._lock:
            if self._over.is_set():
                raise EffectError(f"{part} is not killed: the job has ended")
            detail = part.kill()
            thread = threading.Thread(target=self._restart, args=(part, after), name=f"restart of {part}", daemon=True)
            self._threads.append(thread)
            thread.start()
        return detail, thread

    def settle(self, deadline: float) -> list[str]:
        """Start at once what is still away; nothing is killed any more. Returns what did not come back."""
        with self._lock:
            self._over.set()
        for thread in self._threads:
            thread.join(deadline)
        hanging = [f"{thread.name} has not ended" for thread in self._threads if thread.is_alive()]
        return self._failures + hanging

    def _restart(self, part: Restartable, after: float) -> None:
        self._over.wait(after)
        try:
            detail = part.start()
        except Exception as error:
            self._failures.append(f"{part} did not come back: {error}")
            self.record("environment.failure", {**part.as_fields(), "part": str(part), "detail": str(error)})
        else:
            self.record(f"{part.target}.{part.back}", {**part.as_fields(), "detail": detail})
