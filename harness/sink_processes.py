"""The processes in which the functions of a session's sinks run: a trial borrows one, and the next trial of the same
sink may have it again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .environments.base import Environment
from .environments.host import added
from .sinks import SinkProcess

IDLE = 4
"""So many are kept while nobody needs them, those that were needed last: each has all in memory that a sink imports."""


@dataclass(frozen=True)
class _Served:
    """A process for a sink's functions. Its output goes to the trial for which it was started."""

    path: Path
    process: SinkProcess
    log: Path

    def close(self) -> None:
        self.process.close()
        if self.log.exists() and not self.log.stat().st_size:
            self.log.unlink()


@dataclass
class SinkProcesses:
    """Those of one session. ``deadline``: seconds that a function of a sink may take."""

    deadline: float
    _idle: list[_Served] = field(default_factory=list)
    _closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def borrow(self, path: Path, environment: Environment, logs: Path) -> Iterator[SinkProcess]:
        """A process for the sink, that nobody else has meanwhile. What it says is kept in the trial's ``logs``."""
        log = logs / f"sink-{path.stem}.log"
        served = self._idle_one(path) or _Served(path, SinkProcess(path, environment, log, self.deadline), log)
        before = served.log.stat().st_size if served.log.exists() else 0
        try:
            yield served.process
        finally:
            said = added(served.log, before)
            if said and log != served.log:
                log.write_bytes(said)
            self._give_back(served)

    def close(self) -> None:
        """End those that nobody has; one that is given back later ends then."""
        with self._lock:
            self._closed, idle, self._idle = True, self._idle, []
        for served in idle:
            served.close()

    def _idle_one(self, path: Path) -> _Served | None:
        with self._lock:
            found = next((served for served in reversed(self._idle) if served.path == path), None)
            if found is not None:
                self._idle.remove(found)
            return found

    def _give_back(self, served: _Served) -> None:
        with self._lock:
            self._idle.append(served)
            spare = len(self._idle) if self._closed else max(0, len(self._idle) - IDLE)
            ended, self._idle = self._idle[:spare], self._idle[spare:]
        for one in ended:
            one.close()
