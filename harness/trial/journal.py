"""Everything that happens in a trial, as JSON lines, appended and flushed as it happens: see docs/journal.md."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any


class Journal:
    """Appends events to a file and keeps them; safe to call from any thread.

    ``t`` is in seconds since the journal was opened.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._clock = clock
        self._start = clock()
        self._lock = threading.Lock()
        self._events: list[dict[str, Any]] = []

    def record(self, event: str, fields: Mapping[str, Any]) -> int:
        """Returns the event's place among all, from 0; one that comes after the end is not kept."""
        with self._lock:
            if self._file.closed:
                return len(self._events)
            entry = {"t": round(self._clock() - self._start, 4), "event": event, **fields}
            self._events.append(entry)
            self._file.write(json.dumps(entry, ensure_ascii=False, default=str) + "\n")
            self._file.flush()
            return len(self._events) - 1

    def events(self, kind: str | None = None) -> list[dict[str, Any]]:
        """A copy of what was recorded so far, of one kind or of all."""
        with self._lock:
            return [event for event in self._events if kind is None or event["event"] == kind]

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._file.close()
