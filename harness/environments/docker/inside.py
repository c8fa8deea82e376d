"""Processes inside a container: ``inside.py end|freeze|thaw PID`` or ``inside.py executors``.

Standard library only. A copy of it, with processes.py next to it, lies in the directory that all containers share, and
only that copy runs; it prints one JSON document.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

import processes  # type: ignore[import-not-found]

EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
"""As in driver_start.py. Given as an argument it would be on this program's own command line, and be found there."""


def act(verb: str, pid: int) -> list[str]:
    """A process with all below it, which share its machine; returns what was acted on."""
    row = processes.look(pid)
    if row is None or not row.alive:
        raise processes.Survivor(f"process {pid} is dead already")

    def select(rows: Any) -> Any:
        own = rows.get(pid)
        alive = [own] if own and own.alive and own.identity == row.identity else []
        return alive + processes.descendants([pid], rows) if alive else []

    if verb == "thaw":
        found = [each for each in select(processes.table()) if each.state in processes.STOPPED]
        for each in found:
            processes.send(each, signal.SIGCONT)
        processes.confirm(found, "running")
    else:
        found = processes.end(select) if verb == "end" else processes.freeze(select)
    return [str(each) for each in found]


def executors() -> list[int]:
    return [row.pid for row in processes.table().values() if row.alive and EXECUTOR in processes.command(row.pid)]


def main(verb: str, *pids: str) -> None:
    try:
        found: object = executors() if verb == "executors" else act(verb, int(pids[0]))
    except processes.Survivor as error:
        print(json.dumps({"error": str(error)}))
    else:
        print(json.dumps({"found": found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
