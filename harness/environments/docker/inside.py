"""Processes inside a container: ``inside.py end|freeze|thaw|terminate PID``, ``executors``, ``workers``,
``end-jobs``, ``client FROM TO`` (two ports) or ``lives PID:STARTED``.

Standard library only. A copy of it, with processes.py and connections.py next to it, lies in the directory that all
containers share, and only that copy runs; it prints one JSON document.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import connections  # type: ignore[import-not-found]
import processes  # type: ignore[import-not-found]

EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
"""As in driver_start.py. Given as an argument it would be on this program's own command line, and be found there."""

WORKER = "org.apache.spark.deploy.worker.Worker"
"""As in spark_master.py, for the same reason."""

OF_JOBS = frozenset((EXECUTOR, "pyspark.daemon"))
"""What is on the command lines of executors and of their Python workers. Another user's environment cannot be read."""


def act(verb: str, pid: int) -> list[str]:
    """A process with all below it, which share its machine, but for SIGTERM; returns what was acted on."""
    row = processes.look(pid)
    if row is None or not row.alive:
        raise processes.Survivor(f"process {pid} is dead already")
    if verb == "terminate":
        processes.send(row, signal.SIGTERM)
        return [str(row)]

    def select(rows: Any) -> Any:
        own = rows.get(pid)
        alive = [own] if own and own.alive and own.identity == row.identity else []
        return alive + processes.descendants([pid], rows) if alive else []

    if verb == "thaw":
        found = [each for each in select(processes.table()) if each.state in processes.STOPPED]
        for each in found:
            processes.send(each, signal.SIGCONT)
        processes.confirm(found, "going on")
    else:
        found = processes.end(select) if verb == "end" else processes.freeze(select)
    return [str(each) for each in found]


def executors() -> list[tuple[int, Sequence[str]]]:
    """Their JVMs with their command lines: what runs them has the same words on its own."""
    return list(_jvms(EXECUTOR))


def workers() -> list[int]:
    """Spark's own, which start executors and end them."""
    return [pid for pid, _ in _jvms(WORKER)]


def _jvms(main_class: str) -> Iterator[tuple[int, Sequence[str]]]:
    commands = [(row.pid, processes.command(row.pid)) for row in processes.table().values() if row.alive]
    return ((pid, words) for pid, words in commands if main_class in words and Path(words[0]).name == "java")


def end_jobs() -> list[str]:
    """End the executors and Python workers of every job, stopped ones and orphans too; returns what was ended."""

    def select(rows: Any) -> Any:
        found = [row for row in rows.values() if row.alive and OF_JOBS.intersection(processes.command(row.pid))]
        return found + processes.descendants([row.pid for row in found], rows)

    return [str(each) for each in processes.end(select)]


def client(own_port: str, port: str) -> dict[str, Any] | None:
    """The process that has a connection from its own port to a port of another machine's."""
    pid = connections.owner(int(own_port), int(port))
    owner = None if pid is None else processes.look(pid)
    if owner is None:
        return None
    variables, command = processes.environment(owner.pid), processes.command(owner.pid)
    return {"identity": owner.identity, "variables": variables, "command": command}


COMMANDS: dict[str, Callable[..., object]] = {
    "executors": executors,
    "workers": workers,
    "end-jobs": end_jobs,
    "client": client,
    "lives": processes.lives,
}


def main(verb: str, *words: str) -> None:
    try:
        found: object = COMMANDS[verb](*words) if verb in COMMANDS else act(verb, int(words[0]))
    except processes.Survivor as error:
        print(json.dumps({"error": str(error)}))
    else:
        print(json.dumps({"found": found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
