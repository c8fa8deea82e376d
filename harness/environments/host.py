"""What all parts of an environment share: its guardian, its directories, and the logs of its processes."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from ..java import DROPPED
from ..runtime.guardian import Child, Guardian, User
from ..runtime.leftovers import check_space, disk_errors
from ..runtime.ports import Port, reserve
from ..runtime.waiting import POLL, NotYet, WaitTimeout, wait_for
from .base import Unavailable

T = TypeVar("T")

TAIL_LINES = 12

SPARKS = ("SPARK_", "PYSPARK_")
"""Prefixes of variables by which Spark takes its settings from its environment; a job has those of its own."""


def inherited(drop: Sequence[str] = ()) -> dict[str, str]:
    """The caller's environment for a child; ``drop`` are prefixes of names that are left out."""
    unwanted = (*DROPPED, "ONCEPROOF_", *drop)
    return {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}


@dataclass
class Host:
    """``state`` is the environment's own directory; it goes with the guardian."""

    guardian: Guardian
    state: Path
    _read: dict[Path, int] = field(default_factory=dict)
    _ports: list[Port] = field(default_factory=list)
    _collecting: threading.Lock = field(default_factory=threading.Lock)

    def port(self) -> Port:
        """A port that is reserved for as long as the environment lives."""
        port = reserve()
        self._ports.append(port)
        return port

    def release_ports(self) -> None:
        for port in self._ports:
            port.release()

    def directory(self, *names: str) -> Path:
        """A directory below the state directory, made if it is missing."""
        path = self.state
        for name in names:
            # Not parents=True: what still runs while the environment is closed must not bring its directory back.
            path = path / name
            with disk_errors():
                path.mkdir(exist_ok=True)
        return path

    def write(self, path: Path, text: str) -> Path:
        with disk_errors():
            path.write_text(text, encoding="utf-8")
        return path

    def log(self, part: str) -> Path:
        return self.directory("logs") / f"{part.replace(' ', '-')}.log"

    def start(
        self, part: str, argv: Sequence[str], env: Mapping[str, str], cwd: Path | None = None, user: User = None
    ) -> Child:
        """Start a service process; its output is appended to its part's log."""
        check_space(self.state)
        return self.guardian.spawn(argv, env, cwd or self.state, self.log(part), user)

    def tail(self, part: str, since: int = 0) -> str:
        """The last lines of a part's log, in one line."""
        return tail(self.log(part), since)

    def collect(self, paths: Mapping[str, Path], directory: Path) -> None:
        """Copy what was added to each log since the last call to ``directory`` under its name.

        Trials that run side by side end at any time: what was added is copied for one of them, once.
        """
        with self._collecting, disk_errors():
            directory.mkdir(parents=True, exist_ok=True)
            for name, path in paths.items():
                text = added(path, self._read.get(path, 0))
                self._read[path] = self._read.get(path, 0) + len(text)
                if text:
                    (directory / name).write_bytes(text)


def added(path: Path, since: int) -> bytes:
    """What a log holds behind its first ``since`` bytes; nothing if there is no such file."""
    try:
        with path.open("rb") as file:
            file.seek(since)
            return file.read()
    except FileNotFoundError:
        return b""


def tail(path: Path, since: int = 0) -> str:
    lines = added(path, since).decode("utf-8", "replace").splitlines()
    return " | ".join(deque((line.strip() for line in lines if line.strip()), TAIL_LINES)) or "no output"


def wait_available(
    condition: Callable[[], T | NotYet | Literal[False] | None], deadline_seconds: float, what: str, poll: float = POLL
) -> T:
    """:func:`wait_for`, for what the environment owes: a timeout raises Unavailable."""
    try:
        return wait_for(condition, deadline_seconds, what, poll)
    except WaitTimeout as error:
        raise Unavailable(str(error)) from error
