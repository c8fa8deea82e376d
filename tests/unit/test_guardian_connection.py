"""What a harness sees of a guardian that does not start, or dies: one line, for the environment is gone."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from onceproof.harness.errors import Unavailable
from onceproof.harness.runtime import guardian as module
from onceproof.harness.runtime.guardian import Guardian, StartError


class Process:
    """A guardian process on paper: it keeps its end of the connection open, or ends at once."""

    silent: list[Process]

    def __init__(self, arguments: Sequence[str], pass_fds: Sequence[int], **_: object) -> None:
        self.control = os.dup(pass_fds[0])
        self.killed = False
        self.silent.append(self)

    def kill(self) -> None:
        self.killed = True
        os.close(self.control)

    def wait(self, timeout: float | None = None) -> int:
        return -9 if self.killed else 1


class EndsAtOnce(Process):
    def __init__(self, arguments: Sequence[str], pass_fds: Sequence[int], **_: object) -> None:
        super().__init__(arguments, pass_fds)
        os.close(self.control)


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[Process]:
    Process.silent = []
    monkeypatch.setattr(module.subprocess, "Popen", Process)
    monkeypatch.setattr(module, "START_SECONDS", 0.1)
    return Process.silent


@pytest.fixture
def dead() -> Iterator[Guardian]:
    """The connection to a guardian that has just died, which nobody has noticed yet."""
    ours, theirs = socket.socketpair()
    theirs.close()
    process: Any = None
    yield Guardian(process, ours, "1:1")
    ours.close()


def test_a_guardian_that_does_not_start_in_time_is_one_line_and_is_killed(started: list[Process]) -> None:
    with pytest.raises(Unavailable, match=r"^the guardian process did not start within 0.1 s: "):
        Guardian.start("test")
    (process,) = started
    assert process.killed


def test_a_guardian_that_ends_at_its_start_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.subprocess, "Popen", EndsAtOnce)
    with pytest.raises(Unavailable, match=r"^the guardian process ended at its start \(exit code 1\)$"):
        Guardian.start("test")


def test_a_dead_guardian_is_the_environments_failure_and_no_broken_pipe(dead: Guardian, tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"^spawn: the guardian process died \(Broken pipe\)$"):
        dead.spawn(["true"], {}, tmp_path, tmp_path / "log")
    dead.end_processes()
