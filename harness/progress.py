"""What a trial's journal and injector say of its progress; the supervisor asks, and decides on restarts."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from ..faults import Injector

SELF_INFLICTED = ("fail", "kill(worker)", "kill(executor)", "kill(node)", "partition")
"""Actions after which a driver may fail by itself."""


class TrialProgress:
    """Fed with every journal event; answers from memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._committed: set[int] = set()
        self._started: int | None = None
        self._consequences = 0
        self._cut: set[tuple[object, object]] = set()
        self._fired = False
        self._moved = time.monotonic()
        self.injector: Injector | None = None

    def note(self, event: str, fields: Mapping[str, Any]) -> None:
        with self._lock:
            self._moved = time.monotonic()
            if event == "point":
                self._note_point(fields)
            if event == "fault.fired":
                self._fired = True
                self._consequences += any(str(fields.get("action", "")).startswith(name) for name in SELF_INFLICTED)
            self._note_network(event, fields)

    def _note_point(self, fields: Mapping[str, Any]) -> None:
        here = (fields.get("phase"), fields.get("edge"))
        if here == ("batch.commit", "after"):
            self._committed.add(fields["batch"])
        elif here == ("sink.write", "before"):
            self._started = fields["batch"]

    def _note_network(self, event: str, fields: Mapping[str, Any]) -> None:
        """While the plan keeps a machine cut off, drivers may fail by that again and again."""
        link = (fields.get("process"), fields.get("peer"))
        if event == "network.cut":
            self._cut.add(link)
        elif event in ("network.healed", "environment.failure"):
            self._cut.discard(link)
        elif event == "driver.exited":
            self._consequences += bool(self._cut)

    def committed_batches(self) -> int:
        return len(self._committed)

    def started_batch(self) -> int | None:
        return self._started

    def consequences(self) -> int:
        return self._consequences

    @property
    def fired(self) -> bool:
        """Whether any fault fired."""
        return self._fired

    def idle_seconds(self) -> float:
        """A job that waits for a network which the plan keeps cut is not idle."""
        if self.busy() or self._cut:
            return 0.0
        return time.monotonic() - self._moved

    def busy(self) -> bool:
        return self.injector is not None and self.injector.acting()

    def holding(self) -> bool:
        return self.injector is not None and self.injector.holding() > 0

    def release(self, reason: str | None = None) -> None:
        self._moved = time.monotonic()
        if self.injector is not None:
            self.injector.release_all(reason)
