"""A driver as processes on this machine: how it is started, and how its machine dies."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Collection
from pathlib import Path

from ...runtime import processes
from ...runtime.guardian import Child
from ..base import DeadAlready, EffectError
from ..driver_start import DRIVER

PLACE = "local"
REAP_SECONDS = 5.0


class LocalDriver:
    """All processes that carry this driver's mark or descend from it: Python, the JVM, pyspark.daemon, its workers."""

    def __init__(self, child: Child, mark: str, directory: Path) -> None:
        self.process = reference(child.pid)
        self.mark = mark
        self.directory = directory
        self._child = child

    def holds(self, process: str | None) -> bool:
        return process in self.alive()

    def wait(self, timeout: float) -> int | None:
        return self._child.wait(timeout)

    def kill(self) -> str:
        try:
            killed = processes.end(self._machine)
        except processes.Survivor as error:
            raise EffectError(f"the driver was not killed: {error}") from error
        if self._child.wait(REAP_SECONDS) is None:
            raise EffectError(f"the driver was not killed: process {self._child.pid} was not reaped")
        self._require_main(killed, "killed")
        return f"killed {_listed(killed)}"

    def terminate(self) -> str:
        row = processes.look(self._child.pid)
        if row is None or not row.alive or self._child.ended:
            raise DeadAlready(f"the driver was not told to end: process {self._child.pid} is dead already")
        processes.send(row, signal.SIGTERM)
        return f"sent SIGTERM to {row}"

    def pause(self) -> str:
        try:
            stopped = processes.freeze(self._machine)
        except processes.Survivor as error:
            raise EffectError(f"the driver was not stopped: {error}") from error
        self._require_main(stopped, "stopped")
        return f"stopped {_listed(stopped)}"

    def resume(self) -> str:
        stopped = [row for row in self._machine(processes.table()) if row.state in processes.STOPPED]
        return f"resumed {_listed(let_go(stopped))}"

    def alive(self) -> list[str]:
        return [reference(row.pid) for row in self._machine(processes.table())]

    def processor_seconds(self) -> float:
        """Of the processes that live."""
        return sum(row.used for row in self._machine(processes.table()))

    def discard(self) -> None:
        """Remove the driver's own files if nothing of it runs any more."""
        if self._child.ended and not self.alive():
            shutil.rmtree(self.directory, ignore_errors=True)

    def _require_main(self, struck: Collection[processes.Process], how: str) -> None:
        """What its main process leaves behind is no driver any more."""
        if all(process.pid != self._child.pid for process in struck):
            raise DeadAlready(f"the driver was not {how}: process {self._child.pid} is dead already")

    def _machine(self, rows: processes.Table) -> list[processes.Process]:
        below = [] if self._child.ended else processes.descendants([self._child.pid], rows)
        own = [] if self._child.ended else [row for row in (rows.get(self._child.pid),) if row and row.alive]
        marked = processes.marked(DRIVER, self.mark, rows)
        return list({row.pid: row for row in (*own, *below, *marked)}.values())


def reference(pid: int) -> str:
    return f"{PLACE}:{pid}"


def let_go(stopped: list[processes.Process]) -> list[processes.Process]:
    """SIGCONT to processes that live, confirmed. What ends at once went on as well."""
    for row in stopped:
        processes.send(row, signal.SIGCONT)
    try:
        processes.confirm(stopped, "going on")
    except processes.Survivor as error:
        raise EffectError(f"resume: {error}") from error
    return stopped


def _listed(rows: list[processes.Process]) -> str:
    return ", ".join(str(row) for row in sorted(rows, key=lambda row: row.pid)) or "nothing: no process was left"
