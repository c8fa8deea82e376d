"""How long a job has been idle: limits follow what the job does, so that a busy machine makes no job look hung."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

LOOK_SECONDS = 1.0
"""Between two looks at the drivers' use of processors."""

WORKING = 0.5
"""The part of its fair share of one processor that a driver which starts uses at least. Polling uses far less."""

START_SECONDS = 60.0
"""Seconds of processor time that a driver may use before it hands over a batch without being idle. Measured: 12 for a
lean start, 25 with the user's own settings."""


def crowd() -> float:
    """How many threads of the whole machine want each processor now; at least 1 (proc(5), loadavg, fourth field)."""
    try:
        running = int(Path("/proc/loadavg").read_text(encoding="ascii").split()[3].partition("/")[0])
    except (OSError, ValueError, IndexError):
        return 1.0
    return max(1.0, (running - 1) / len(os.sched_getaffinity(0)))  # one of them is this thread


@dataclass
class Idleness:
    """Seconds without a report, as they would be on a machine that is free.

    Where many threads want each processor, everything takes so many times longer, and time counts so many times less.
    Before a driver hands its first batch to the sink, time in which it works does not count at all: its JVM, session
    and first plan are not the sink's. That ends after START_SECONDS of processor time without a report.

    ``used`` is the processor time of the job's drivers so far, in seconds; None where it is not known: then a start
    counts like all else.
    """

    used: Callable[[], float | None]
    clock: Callable[[], float] = time.monotonic
    crowd: Callable[[], float] = crowd
    _silent: float = field(default=0.0, init=False)
    _now: float | None = field(default=None, init=False)
    _idle: float = field(default=0.0, init=False)
    _unsure: float = field(default=0.0, init=False)
    """Of the time since the last look: whether the driver worked shows at the next one."""
    _looked: float = field(default=float("-inf"), init=False)
    _last: float | None = field(default=None, init=False)
    _started: float = field(default=0.0, init=False)

    def seconds(self, silent: float, starting: bool) -> float:
        """For how long the job has been idle, if nothing was reported for ``silent`` seconds by now; to be asked often,
        because only what passes between two calls is known to be one or the other."""
        now, crowd = self.clock(), self.crowd()
        passed = silent if self._now is None else min(silent, now - self._now)
        if silent < self._silent or not silent:
            self._idle, self._unsure, self._started, self._looked = 0.0, 0.0, 0.0, now
        self._silent, self._now = silent, now
        self._unsure += passed / crowd
        if now - self._looked >= LOOK_SECONDS:
            self._look(now, crowd, starting)
        return self._idle + self._unsure

    def _look(self, now: float, crowd: float, starting: bool) -> None:
        passed, self._looked = now - self._looked, now
        last, self._last = self._last, self.used() if starting else None
        unsure, self._unsure = self._unsure, 0.0
        # Less than before: a process has ended, and what it used went with it.
        worked = 0.0 if last is None or self._last is None else abs(self._last - last)
        if starting and worked >= WORKING * passed / crowd and self._started < START_SECONDS:
            self._started += worked
        else:
            self._idle += unsure
