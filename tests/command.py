"""The command line as a user runs it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onceproof.harness.cli import execute

ONCEPROOF = (sys.executable, "-m", "onceproof.harness.cli")


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Command:
    """Runs the command line in one directory."""

    directory: Path

    def __call__(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        command: Sequence[str] = ONCEPROOF,
    ) -> Ended:
        return self.end(self.start(*arguments, env=env, command=command))

    def start(
        self, *arguments: str, env: Mapping[str, str] | None = None, command: Sequence[str] = ONCEPROOF
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*command, *arguments],
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
        )

    def end(self, process: subprocess.Popen[str]) -> Ended:
        """Wait for its end; when the test's own time is over (pytest-timeout), the command is ended with it."""
        try:
            out, err = process.communicate()
        except BaseException:
            process.kill()
            process.communicate()
            raise
        return Ended(process.returncode, out, err)


@dataclass(frozen=True)
class InProcess:
    """The same in this process, for what is refused before anything is started: Python alone takes longer to start."""

    directory: Path

    def __call__(self, *arguments: str) -> Ended:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.chdir(self.directory), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = execute(arguments)
        return Ended(code, out.getvalue(), err.getvalue())
