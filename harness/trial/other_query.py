"""A second query beside the trial's: of the same job and sink, with a checkpoint and targets of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

from ..environments.base import Driver, EffectError, end_all
from ..errors import ObservationError, SinkError, one_line
from ..runtime.waiting import WaitTimeout, wait_for
from ..sink_process import SinkProcess
from ..sinks import Sink
from . import checkpoint
from .arrange import Resources

Record = Callable[[str, Mapping[str, Any]], None]

AWAITED = 75.0
"""Seconds for which a query is waited for at most: less than a job may stand still (--deadline, 90 s by default)."""


@dataclass
class OtherQueries:
    """Implements :class:`onceproof.faults.capabilities.Queries`, and records what it starts (``query.ran``).

    ``make`` gives what another query needs, empty; ``start_driver`` starts its driver, which no probe looks at.
    ``still`` keeps the driver of a process of the trial's job still.
    """

    make: Callable[[], Resources]
    start_driver: Callable[[Resources], Driver]
    sink: Sink
    sink_process: SinkProcess
    still: Callable[[str | None], AbstractContextManager[None]]
    record: Record
    _stack: ExitStack = field(default_factory=ExitStack)
    _over: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, point: Mapping[str, Any]) -> str:
        """Returns once it has committed a batch, has ended, or has been waited for: a client of the first one's would
        not wait so long, and ask again. Raises EffectError."""
        with self.still(point.get("process")):
            return self._run()

    def _run(self) -> str:
        with self._lock:
            if self._over:
                raise EffectError("no second query is started: the job has ended")
            resources, driver = self._begin()
        with suppress(WaitTimeout):  # what it has come to by then is recorded
            wait_for(
                lambda: checkpoint.committed(resources.checkpoint) or driver.wait(0) is not None,
                AWAITED,
                "a batch of the second query",
            )
        planned, committed = (len(log(resources.checkpoint)) for log in (checkpoint.planned, checkpoint.committed))
        code = driver.wait(0)
        fields = {"process": driver.process, "name": resources.name, "planned": planned, "committed": committed}
        self.record("query.ran", {**fields, "code": code})
        state = "still runs" if code is None else f"has ended with code {code}"
        return f"a second query ({driver.process}) has planned {planned} batches, committed {committed}, and {state}"

    def end(self) -> None:
        """Its driver ends, what was made for it goes; none is started any more."""
        with self._lock:
            self._over = True
            self._stack.close()

    def _begin(self) -> tuple[Resources, Driver]:
        try:
            resources = self.make()
            self._stack.callback(self._remove, resources)
            if "prepare" in self.sink.functions:
                self.sink_process.call("prepare", resources.namespace("harness"))
            driver = self.start_driver(resources)
        except (ObservationError, SinkError) as error:
            raise EffectError(f"the second query did not start: {one_line(error)}") from error
        self._stack.callback(_end, driver)
        return resources, driver

    def _remove(self, resources: Resources) -> None:
        """What cannot be removed goes with the environment."""
        with suppress(ObservationError, SinkError):
            if "cleanup" in self.sink.functions:
                self.sink_process.call("cleanup", resources.namespace("harness"))
        for kind in resources.targets.kinds:
            with suppress(ObservationError):
                resources.targets.drop(kind)


def _end(driver: Driver) -> None:
    if driver.alive():
        end_all(driver)
