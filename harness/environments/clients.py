"""Whose connection it is, by what the process says of itself that opened it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .base import Client
from .driver_start import DRIVER, JOB, is_executor

MARKS = (DRIVER, JOB)
"""The mark that every process of one driver has in its environment; the second one on other machines."""


def client(
    place: str, pid: int, variables: Mapping[str, str], command: Sequence[str], gone: Callable[[], bool]
) -> Client | None:
    """The process with these environment variables and this command line; None if it is none of a job's."""
    mark = next((variables[variable] for variable in MARKS if variables.get(variable)), None)
    return Client(place, pid, mark, _role(command), gone) if mark and command else None


def _role(command: Sequence[str]) -> str:
    if is_executor(command):
        return "executor"
    return "driver" if Path(command[0]).name == "java" else "python-client"
