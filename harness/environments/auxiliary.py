"""Auxiliary processes of a trial, on the harness's own machine: they run the sink's prepare, read and cleanup."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from ..runtime import processes
from ..runtime.guardian import Child, Guardian
from ..runtime.leftovers import disk_errors
from .base import EffectError, ProcessSpec

AUXILIARY = "ONCEPROOF_AUXILIARY"
"""Environment variable of an auxiliary process and of all that it starts."""


class AuxiliaryProcess:
    """A process that runs the sink's own functions, with all that it started."""

    def __init__(self, child: Child, mark: str) -> None:
        self._child = child
        self._mark = mark

    def wait(self, timeout: float) -> int | None:
        return self._child.wait(timeout)

    def kill(self) -> str:
        try:
            ended = processes.end(lambda rows: processes.marked(AUXILIARY, self._mark, rows))
        except processes.Survivor as error:
            raise EffectError(str(error)) from error
        self._child.wait(1)
        return f"killed {', '.join(map(str, ended))}"


def start_auxiliary(
    guardian: Guardian, spec: ProcessSpec, python: str, temporary: Path, inherited: Mapping[str, str]
) -> AuxiliaryProcess:
    """``inherited`` is the caller's environment, below what is set here."""
    mark = secrets.token_hex(6)
    path = os.pathsep.join([*spec.python_path, *filter(None, [os.environ.get("PYTHONPATH", "")])])
    variables = {"TZ": "UTC", "TMPDIR": str(temporary), AUXILIARY: mark}
    variables |= ({"PYTHONPATH": path} if path else {}) | dict(spec.variables)
    with disk_errors():
        spec.log.parent.mkdir(parents=True, exist_ok=True)
    child = guardian.spawn([python, *spec.arguments], {**inherited, **variables}, temporary, spec.log)
    return AuxiliaryProcess(child, mark)
