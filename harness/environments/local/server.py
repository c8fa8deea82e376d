"""What the servers of targets have in common here: how they die, and how they come back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from ...runtime import processes
from ...runtime.guardian import Child
from ..base import EffectError, Failure
from ..host import Host


class Server(ABC):
    """A server that is one process with what it starts. ``part`` names it in messages and its log."""

    part: ClassVar[str]

    def __init__(self, host: Host) -> None:
        self.host = host
        self.port = host.port()
        self.child: Child | None = None
        self.version = ""
        self._killed = False

    @abstractmethod
    def start(self) -> None:
        """Make what it needs, and start it; returns when it answers. Raises Unavailable."""

    @abstractmethod
    def launch(self) -> None:
        """Start the process on what it has on its disk, and return when it answers. Raises Unavailable."""

    def kill(self) -> str:
        """SIGKILL to all of its processes at the same moment: left alone, those that serve a connection would end what
        they are at. Confirmed. Raises EffectError."""
        row = processes.look(self.child.pid) if self.child is not None else None
        if self.child is None or row is None or self.child.ended:
            raise EffectError(f"{self.part} does not run")
        self._killed = True
        try:
            ended = processes.end(lambda rows: processes.with_descendants(row, rows))
        except processes.Survivor as error:
            raise EffectError(f"kill of {self.part}: {error}") from error
        if self.child.kill() is None:
            raise EffectError(f"{self.part} (process {row.pid}) survived SIGKILL")
        return f"killed {self.part}, processes {', '.join(str(one.pid) for one in ended)}"

    def start_again(self) -> str:
        """Start it after a kill; returns, for the journal, once it answers. Raises EffectError, Unavailable."""
        if not self._killed:
            raise EffectError(f"{self.part} runs already")
        self.launch()
        self._killed = False
        return f"{self.part} recovered and answers, process {self.child.pid if self.child else '?'}"

    def recover(self) -> None:
        """After a user who may have died in a trial, and left it dead. Raises Unavailable."""
        if self._killed:
            self.start_again()

    def failures(self) -> list[Failure]:
        """How it ended, if nobody asked it to; said once."""
        if self.child is None or not self.child.ended or self._killed:
            return []
        code, self.child = self.child.wait(0), None
        return [Failure(self.part, f"ended by itself (exit code {code}): {self.host.tail(self.part)}")]
