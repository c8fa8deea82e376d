"""The processes that a plan has stopped: each pause resumes its own, and none stays stopped behind its trial."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...plans import ActionReference
from ..environments.base import EffectError

Record = Callable[[str, Mapping[str, Any]], None]


@dataclass(frozen=True)
class Pausable:
    """A ``process``, which is the cluster's ``target``, with what stops it and what resumes it.

    Both return, for the journal, what was done. ``answer``: what shows that it goes on, where no probe of it does.
    """

    target: str
    process: str
    stop: Callable[[], str]
    resume: Callable[[], str]
    answer: Callable[[], str] | None = None

    def as_fields(self, detail: str) -> dict[str, Any]:
        """As the journal names it."""
        return {"target": self.target, "process": self.process, "detail": detail}


@dataclass
class Pauses:
    """What is stopped in a trial, by the action that stopped it; resumed at the latest by ``settle``."""

    record: Record
    _stopped: dict[ActionReference, Pausable] = field(default_factory=dict)
    _ended: set[str] = field(default_factory=set)
    _over: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, by: ActionReference, one: Pausable) -> str:
        """Stop it. Raises EffectError."""
        with self._lock:
            if self._over:
                raise EffectError(f"{one.process} ({one.target}) is not stopped: the job has ended")
            self._stopped[by] = one  # first: a stop that fails half-way leaves something to let go
            detail = one.stop()
            self.record("process.paused", one.as_fields(detail))
        return detail

    def stopped_by(self, fault: int, target: str) -> str | None:
        """The process of ``target`` that an action of the fault has stopped, and that is not resumed yet."""
        with self._lock:
            found = [one.process for by, one in self._stopped.items() if (by.fault, one.target) == (fault, target)]
        return found[-1] if found else None

    def end(self, by: ActionReference) -> str:
        """Resume what the action ``by`` has stopped, unless that was done before. Raises EffectError."""
        with self._lock:
            return self._end(by) if by in self._stopped else "it had been resumed before"

    def end_last(self, target: str) -> str | None:
        """Resume what was stopped last of ``target``; None if nothing of it ever was. Raises EffectError."""
        with self._lock:
            found = [by for by, one in self._stopped.items() if one.target == target]
            if found:
                return self._end(found[-1])
            return "it had been resumed before" if target in self._ended else None

    def resume(self, one: Pausable) -> str:
        """Resume a process that no pause of the trial has stopped. Raises EffectError."""
        with self._lock:
            return self._resume(one)

    def settle(self) -> list[str]:
        """Resume at once what is still stopped; nothing is stopped any more. Returns what could not be resumed.

        Drivers have ended, and executors and workers end with them: one of these that cannot be resumed is dead, or
        :class:`.settle.Settler` finds that it still runs.
        """
        with self._lock:
            self._over = True
            left, self._stopped = list(self._stopped.values()), {}
            failures = [self._failure(one) for one in left if one.target != "driver"]
        return [failure for failure in failures if failure]

    def _end(self, by: ActionReference) -> str:
        detail = self._resume(self._stopped[by])
        self._ended.add(self._stopped[by].target)
        del self._stopped[by]  # not before: what could not be resumed is tried again at the end
        return detail

    def _failure(self, one: Pausable) -> str | None:
        try:
            self._resume(one)
        except Exception as error:
            if one.target == "broker":
                self.record("environment.failure", {"part": one.process, "detail": str(error)})
                return f"{one.process} ({one.target}) was not resumed: {error}"
        return None

    def _resume(self, one: Pausable) -> str:
        detail = one.resume()
        self.record("process.resumed", one.as_fields(detail))
        if one.answer is not None:
            self.record("process.answers", one.as_fields(one.answer()))
        return detail
