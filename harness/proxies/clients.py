"""Whose connection it is: the process that opened it, by its port."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from ..environments.driver_start import EXECUTOR

MARKS = ("ONCEPROOF_DRIVER", "ONCEPROOF_JOB")
"""The mark that every process of one driver has in its environment; the second one on other machines."""


@dataclass(frozen=True)
class Client:
    """A process of the job's: ``place`` and ``pid`` as probes report them, the driver's ``mark``, and its ``role``."""

    place: str
    pid: int
    mark: str
    role: str

    @property
    def gone(self) -> bool:
        """Whether the process runs no more."""
        try:
            return psutil.Process(self.pid).status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    def as_fields(self) -> dict[str, Any]:
        return {"place": self.place, "pid": self.pid, "driver": self.mark, "role": self.role}


def client_of(peer: tuple[str, int], port: int) -> Client | None:
    """The process of this machine whose socket is bound to ``peer`` and connected to ``port``.

    None if it has ended meanwhile, or is no process of a job's.
    """
    for connection in psutil.net_connections("tcp"):
        if connection.pid and connection.raddr and connection.raddr.port == port and _address(connection.laddr) == peer:
            return _client(connection.pid)
    return None


def _address(local: Any) -> tuple[str, int]:
    """Of IPv4, also where it is written as one of IPv6, as a JVM's sockets are."""
    return str(local.ip).removeprefix("::ffff:"), int(local.port)


def _client(pid: int) -> Client | None:
    try:
        process = psutil.Process(pid)
        variables, command = process.environ(), process.cmdline()
    except psutil.Error:
        return None
    mark = next((variables[variable] for variable in MARKS if variables.get(variable)), None)
    if mark is None:
        return None
    return Client(variables.get("ONCEPROOF_PLACE", "local"), pid, mark, _role(command))


def _role(command: Sequence[str]) -> str:
    if EXECUTOR in command:
        return "executor"
    return "driver" if Path(command[0]).name == "java" else "python-client"
