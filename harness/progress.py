"""What a trial's journal and injector say of its progress; the supervisor asks, and decides on restarts."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from ..faults import Injector

SELF_INFLICTED = ("fail", "kill(worker)", "kill(executor)")
"""Actions after which a driver may fail by itself."""


class TrialProgress:
    """Fed with every journal event; answers from memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._committed: set[int] = set()
        self._started: int | None = None
        self._consequences = 0
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

    def _note_point(self, fields: Mapping[str, Any]) -> None:
        here = (fields.get("phase"), fields.get("edge"))
        if here == ("batch.commit", "after"):
            self._committed.add(fields["batch"])
        elif here == ("sink.write", "before"):
            self._started = fields["batch"]

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
        if self.busy():
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
