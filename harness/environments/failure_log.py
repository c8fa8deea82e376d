"""What died in an environment without being asked to, for each of the trials that run in it side by side."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from .base import Failure


class FailureLog:
    """``find`` tells of each failure once; a death concerns every trial that was under way when it was noticed."""

    def __init__(self, find: Callable[[], list[Failure]]) -> None:
        self._find = find
        self._lock = threading.Lock()
        self._noticed: list[tuple[float, Failure]] = []

    def since(self, start: float) -> list[Failure]:
        """Those noticed since ``start`` (time.monotonic()), and those of now."""
        with self._lock:
            self._noticed += [(time.monotonic(), failure) for failure in self._find()]
            return [failure for noticed, failure in self._noticed if noticed >= start]
