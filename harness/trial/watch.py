"""Readings while the job is under way: what a reader gets between two steps of it.

The target is read with the stream parked where the engine has just recorded a batch as done, after a driver's death,
and where a replay passes the point at which a fault struck. Never while the plan keeps a broker away, holds one of its
threads or cuts the network: then a reading would tell of the fault, not of the sink.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ...assertions import Glimpse, Open
from ..errors import SinkHangs, one_line
from ..runtime.waiting import WaitTimeout, wait_for
from . import checkpoint
from .journal import Journal
from .progress import TrialProgress
from .settle import Settler

SETTLED = 5.0
"""Seconds that a target has after the engine has recorded the batch, until readers get it: it may end transactions on
its own time, as brokers do that write the markers of one."""

SETTLED_AGAIN = 0.5
"""Seconds once it took longer than that: then it is the sink that leaves transactions open."""

READ = 10.0
"""Seconds for a reading: a thread of the job is parked meanwhile, and may hold the lock that the reader waits for."""

COMMIT, DEATH, REPLAY = "commit", "death", "replay"
"""Where is read."""

AT = ("phase", "edge", "batch", "file", "line", "row")
"""Fields by which a replay's point is told to be that of the fault."""


@dataclass(frozen=True)
class _Seen:
    """The last batch that was committed before, the rows and the open transactions; or why they could not be had."""

    committed: int | None
    rows: pa.Table | None = None
    opened: Sequence[Open] = ()
    error: Exception | None = None


@dataclass
class Watch:
    """Takes readings and keeps them. Called by the injector's threads and the supervisor's; one reading at a time.

    ``settle`` are the seconds that the target needs to show what was written.
    """

    settler: Settler
    journal: Journal
    progress: TrialProgress
    settle: float = 0.0
    glimpses: list[Glimpse] = field(default_factory=list)
    _struck: list[tuple[Mapping[str, Any], int]] = field(default_factory=list)
    _passed: dict[tuple[object, ...], int] = field(default_factory=dict)
    _patience: float = SETTLED
    _hung: set[str] = field(default_factory=set)
    _incarnation: int = 0
    _state: threading.Lock = field(default_factory=threading.Lock)
    _reading: threading.Lock = field(default_factory=threading.Lock)

    def note(self, event: str, fields: Mapping[str, Any]) -> None:
        """Every event of the journal: where faults strike, and which driver runs."""
        with self._state:
            if event == "driver.started":
                self._incarnation = fields["incarnation"]
            if event == "fault.reached" and (fields.get("point") or {}).get("role") not in (None, "broker"):
                struck = fields["point"]
                self._struck.append((struck, self._passed.get(_pass(struck), 1)))

    def at_point(self, point: Mapping[str, Any]) -> None:
        """A thread of the job is parked at ``point``, which is not recorded yet; read if this is a place to read at."""
        replayed = self._is_replayed(point)
        if (point.get("phase"), point.get("edge")) == ("batch.commit", "after"):
            self._read(COMMIT, _named(point), point.get("batch"))
        elif replayed:
            self._read(REPLAY, f"the replay's {_named(point)}", point.get("batch"))

    def after_death(self) -> None:
        """No driver runs; the next one is not started yet."""
        self._read(DEATH, "the driver was dead", self.progress.started_batch())

    def _is_replayed(self, point: Mapping[str, Any]) -> bool:
        """Whether another run passes the point of a fault: for the first time, or as often as that one had."""
        with self._state:
            count = self._passed[_pass(point)] = self._passed.get(_pass(point), 0) + 1
            for struck, number in self._struck:
                again = _pass(struck)[: len(AT)] == _pass(point)[: len(AT)] and _pass(struck) != _pass(point)
                if again and count in (1, number):
                    return True
        return False

    def _read(self, where: str, at: str, batch: int | None) -> None:
        with self._reading:
            if where in self._hung or self.progress.busy() or self.progress.disturbed():
                return
            seen = self._look(where)
            if isinstance(seen.error, SinkHangs):
                self._hung.add(where)  # it would hang there again, and the job with it
            self._keep(seen, at, batch)

    def _look(self, where: str) -> _Seen:
        """What is committed is asked first: what becomes so during the reading need not have been read."""
        done = checkpoint.committed(self.settler.resources.checkpoint)
        committed = done[-1] if done else None
        try:
            opened = self._opened(where == COMMIT)
            if self.settle:
                threading.Event().wait(self.settle)
            return _Seen(committed, self.settler.rows(READ), opened)
        except Exception as error:  # whatever it is: it is noted, and the trial goes on
            return _Seen(committed, error=error)

    def _opened(self, ended: bool) -> list[Open]:
        """Open transactions by name; whether readers are held up is asked first, because that takes less time.

        ``ended``: those of the sink must have, and soon nobody may be held up any more.
        """
        return self.settler.open(self._settles() if ended else not self.settler.unsettled())

    def _settles(self) -> bool:
        try:
            return wait_for(lambda: not self.settler.unsettled(), self._patience, "the target to settle", poll=0.02)
        except WaitTimeout:
            self._patience = SETTLED_AGAIN
            return False

    def _keep(self, seen: _Seen, at: str, batch: int | None) -> None:
        number, error = len(self.glimpses) + 1, None if seen.error is None else one_line(seen.error)
        fields = {
            "watch": number,
            "at": at,
            "batch": batch,
            "committed": seen.committed,
            "incarnation": self._incarnation,
            "rows": None if seen.rows is None else seen.rows.num_rows,
            "open": [f"{one.kind} {one.name} {one.state}" for one in seen.opened],
            "error": error,
        }
        index = self.journal.record("reading", fields)
        self.progress.note("reading", fields)
        handed_over = self.progress.newest_batch()
        opened = tuple(seen.opened)
        self.glimpses.append(Glimpse(number, index, seen.committed, handed_over, seen.rows, opened, error, at))


def _pass(point: Mapping[str, Any]) -> tuple[object, ...]:
    """Where the point is, then by whom: a task's attempt passes it, or a run of the query."""
    return (*map(point.get, AT), point.get("run"), point.get("process"), point.get("attempt"))


def _named(point: Mapping[str, Any]) -> str:
    """``sink.write:after[batch=1]``, ``line[my_sink.py:42][batch=1]``"""
    if point.get("phase") == "line":
        step = f"line[{str(point.get('file')).rpartition('/')[2]}:{point.get('line')}]"
    else:
        step = f"{point.get('phase')}:{point.get('edge')}"
    return f"{step}[batch={point['batch']}]" if "batch" in point else step
