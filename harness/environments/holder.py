"""Environments that outlive a command: ``up`` starts a process that holds the services until ``down``.

The holder listens on a unix socket in its state directory, which only its user can enter. Whoever attaches has the
services alone for as long as its connection lives: a connection that ends, by an orderly end or a death, gives them
back, with the brokers disarmed and running. Drivers are started by whoever is attached, and die with it.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pydantic import TypeAdapter

from ...documents import read_document
from ..errors import UsageError, one_line
from ..runtime import processes
from ..runtime.leftovers import OWNER, named, remove_leftovers
from ..runtime.waiting import NotYet
from .base import Addresses, EffectError, Failure, ProbePoint, Unavailable
from .docker.options import DockerOptions
from .host import wait_available
from .local.environment import LocalEnvironment, on_services
from .local.options import LocalOptions
from .local.services import LocalServices

if TYPE_CHECKING:  # the Docker SDK takes a while to load, and most trials do without
    from .docker.environment import DockerEnvironment
    from .docker.services import DockerServices

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
SERVICES = ("kafka", "postgres")
INFO, SOCKET, KEY, LOG = "holder.json", "socket", "key", "holder.log"
SOCKET_BYTES = 107
"""Of the path of a unix socket (unix(7))."""
CALLS = frozenset(
    {
        *("guardian_identity", "provide", "versions", "addresses", "master_url", "cluster_url"),
        *("executor_pids", "gate", "tidy"),
        *("arm_brokers", "brokers", "broker_of", "broker_process", "await_broker", "kill_broker", "start_broker"),
        *("kill_server", "start_server", "failures", "collect_logs", "attach_info"),
    }
)
"""What may be asked of the services over the socket."""
END_SECONDS = 180.0
"""How long an orderly end may take: the removal of containers takes up to a minute, and its guardian may repeat it."""
KILLED_SECONDS = 90.0
"""How long the guardian of a holder that was killed may take to end and remove what is left."""
IN_USE_SECONDS = 0.5
"""How long an attach waits for the end of a user's connection."""
POLL = 0.05
HAND_OVER_SECONDS = 20.0
"""How long an attach waits while the services are being put in order behind the last user."""

TOLD = "it was told to end"


@dataclass(frozen=True)
class NamedEnvironment:
    """An environment that is up. ``process`` identifies its holder; ``until`` is local time, ISO 8601."""

    name: str
    env: str
    process: str
    master: str
    brokers: int
    lean: bool
    until: str
    python: str | None = None
    image: str | None = None
    compose_files: Sequence[str] = ()

    def __str__(self) -> str:
        pid = self.process.partition(":")[0]
        where = "" if self.env == "local" else f"{self.env}, "
        return f"{self.name}: {where}master {self.master}, {self.brokers} broker(s), until {self.until} (process {pid})"

    @property
    def options(self) -> LocalOptions | DockerOptions:
        if self.env == "docker":
            return DockerOptions(self.master, self.lean, self.image, self.compose_files, self.brokers)
        return LocalOptions(self.master, self.brokers, self.lean, str(self.python))


DOCUMENT = TypeAdapter(NamedEnvironment)


class InUse(Unavailable):
    """Somebody else is attached to the environment."""


def up(name: str, options: LocalOptions | DockerOptions, ttl: float) -> NamedEnvironment:
    """Start an environment that stays until :func:`down`, or until ``ttl`` seconds are over and nobody is attached.

    Returns when its services serve. Raises UsageError for a name that will not do, Unavailable.
    """
    check_name(name)
    check_socket(name)
    program = "from onceproof.harness.environments.holder import main; main()"
    env = "docker" if isinstance(options, DockerOptions) else "local"
    command = [sys.executable, "-P", "-c", program, name, env, json.dumps(asdict(options)), str(ttl)]
    # Not our own stderr: the guardian below the holder would keep it, and whoever reads that to its end would wait.
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
        )
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
        except BaseException:
            process.kill()
            raise
        answer = json.loads(line) if line else {"error": _died(process.wait(), errors)}
    if "error" in answer:
        raise Unavailable(answer["error"])
    return NamedEnvironment(**answer)


def check_name(name: str) -> None:
    """Raises UsageError for one that no environment can have."""
    if not NAME.fullmatch(name):
        raise UsageError(f"an environment cannot be called {name!r}: use up to 32 letters, digits, - and _")


def check_socket(name: str) -> None:
    """Raises Unavailable where the path of an environment's socket would be longer than one can be."""
    path = os.fsencode(named(name) / SOCKET)
    if len(path) > SOCKET_BYTES:
        raise Unavailable(
            f"the temporary directory {tempfile.gettempdir()} has too long a path: a socket in it would have one of "
            f"{len(path)} bytes, and {SOCKET_BYTES} are possible",
            "set TMPDIR to a shorter directory",
        )


def _died(code: int, errors: IO[bytes]) -> str:
    """Why a holder ended without an answer: the last line of its stderr."""
    errors.seek(0)
    last = errors.read().decode(errors="replace").strip().rpartition("\n")[2]
    return f"the holder ended at its start (exit code {code}){last and ': '}{last}"


def environments() -> list[NamedEnvironment]:
    """The environments of this user that are up."""
    found = []
    for path in sorted(named("*").parent.glob(named("*").name)):
        try:
            environment = read_document(path / INFO, DOCUMENT)
            lives = processes.lives(environment.process)
        except (OSError, ValueError):
            continue
        if lives:
            found.append(environment)
    return found


def attach(name: str) -> LocalEnvironment | DockerEnvironment:
    """Use an environment that is up, alone, until it is closed. Raises InUse, or Unavailable if it is not up."""
    environment = check_up(name)
    connection = _connect(environment)
    token = _answer(name, connection, "attach", os.getpid())
    if isinstance(environment.options, DockerOptions):
        from .docker.environment import attached

        return attached(environment.options, _answer(name, connection, "attach_info"), connection.close)
    return on_services(RemoteServices(environment, connection, token), name)


def down(name: str) -> None:
    """End an environment; returns when nothing of it is left.

    Raises InUse, or Unavailable if it is not up or something of it does not end.
    """
    environment = _find(name)
    _answer(name, _connect(environment), "down")
    try:
        _await_end(environment, END_SECONDS)
    except Unavailable:
        _kill(environment.process)
        _await_end(environment, KILLED_SECONDS)


def _await_end(environment: NamedEnvironment, seconds: float) -> None:
    state = named(environment.name)

    def ended() -> bool | NotYet:
        if processes.lives(environment.process):
            return NotYet(f"its holder, process {environment.process.partition(':')[0]}, runs")
        return not state.exists() or NotYet(f"{state} is there")

    wait_available(ended, seconds, f"the end of environment {environment.name}")


def _kill(process: str) -> None:
    row = processes.look(int(process.partition(":")[0]))
    if row is not None and row.identity == process:
        processes.send(row, signal.SIGKILL)


class RemoteServices:
    """Implements :class:`.local.services.Services` by calls to a holder, with a connection for each thread."""

    def __init__(self, environment: NamedEnvironment, lease: Connection, token: str) -> None:
        self._environment = environment
        self._lease = lease
        self._token = token
        self._local = threading.local()

    def options(self) -> LocalOptions:
        assert isinstance(self._environment.options, LocalOptions)
        return self._environment.options

    def guardian_identity(self) -> str:
        return str(self._call("guardian_identity"))

    def provide(self, services: Collection[str]) -> None:
        self._call("provide", tuple(services))

    def versions(self) -> dict[str, str]:
        return dict(self._call("versions"))

    def addresses(self) -> Addresses:
        found: Addresses = self._call("addresses")
        return found

    def master_url(self) -> str:
        return str(self._call("master_url"))

    def cluster_url(self) -> str:
        return str(self._call("cluster_url"))

    def executor_pids(self) -> list[int]:
        return list(self._call("executor_pids"))

    def gate(self) -> str:
        return str(self._call("gate"))

    def arm_brokers(self, rules: str | None, injector: ProbePoint | None) -> None:
        self._call("arm_brokers", rules, injector)

    def broker_of(self, pid: int) -> int:
        return int(self._call("broker_of", pid))

    def brokers(self) -> list[int]:
        return list(self._call("brokers"))

    def broker_process(self, broker: int) -> int:
        return int(self._call("broker_process", broker))

    def await_broker(self, broker: int) -> str:
        return str(self._call("await_broker", broker))

    def kill_broker(self, broker: int) -> str:
        return str(self._call("kill_broker", broker))

    def start_broker(self, broker: int) -> str:
        return str(self._call("start_broker", broker))

    def kill_server(self, service: str) -> str:
        return str(self._call("kill_server", service))

    def start_server(self, service: str) -> str:
        return str(self._call("start_server", service))

    def failures(self) -> list[Failure]:
        return list(self._call("failures"))

    def collect_logs(self, directory: str) -> None:
        self._call("collect_logs", directory)

    def tidy(self) -> None:
        self._call("tidy")

    def close(self) -> None:
        """Give the services back."""
        self._lease.close()

    def _call(self, method: str, *arguments: Any) -> Any:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = _connect(self._environment)
            _answer(self._environment.name, connection, "join", self._token)
        return _answer(self._environment.name, connection, method, *arguments)


class Holder:
    """The process that holds the services: one thread for each connection, one lease."""

    def __init__(self, name: str, env: str, services: LocalServices | DockerServices, ttl: float) -> None:
        self.services = services
        self.state = services.host.state
        self._name = name
        self._env = env
        self._end = time.monotonic() + ttl
        self._until = datetime.now() + timedelta(seconds=ttl)
        self._lease = threading.Lock()
        self._token = ""
        self._user: int | None = None
        self._last_user: int | None = None
        self._down = threading.Event()
        self._why_down = TOLD

    def prepare(self) -> NamedEnvironment:
        """Start the services, and listen."""
        self.services.provide(SERVICES)
        key = secrets.token_bytes(32)
        self._listener = Listener(str(self.state / SOCKET), family="AF_UNIX", backlog=16, authkey=key)
        descriptor = os.open(self.state / KEY, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            file.write(key)
        until = self._until.isoformat(timespec="minutes")
        process = processes.identity(os.getpid())
        environment = NamedEnvironment(self._name, self._env, process, until=until, **asdict(self.services.options()))
        (self.state / INFO).write_text(json.dumps(asdict(environment)))
        return environment

    def serve(self) -> None:
        """Until ``down``, or the time is over and nobody is attached."""
        signal.signal(signal.SIGTERM, lambda *_: self._down.set())
        threading.Thread(target=self._accept, name="accept", daemon=True).start()
        while not self._down.wait(max(1.0, self._end - time.monotonic())):
            if time.monotonic() >= self._end and self._lease.acquire(blocking=False):
                self._end_with("its time is over")

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except (OSError, EOFError, AuthenticationError):
                continue
            threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def _converse(self, connection: Connection) -> None:
        """Answer one connection until it ends. The first message says what it is for."""
        leased = False
        try:
            while True:
                method, *arguments = connection.recv()
                try:
                    if method == "attach":
                        value: Any = self._attach(*arguments)
                        leased = True
                    else:
                        value = self._answer(method, *arguments)
                    reply = (True, value)
                except Exception as error:
                    reply = (False, _portable(error))
                connection.send(reply)
        except (EOFError, OSError):
            pass
        finally:
            connection.close()
            if leased:
                self._release()

    def _attach(self, pid: int) -> str:
        self._obtain("wait for its end, or start another one with 'onceproof up --name OTHER'")
        self._user = self._last_user = pid
        self._token = secrets.token_hex(16)
        return self._token

    def _answer(self, method: str, *arguments: Any) -> Any:
        if method == "down":
            return self._go_down()
        if method == "join":
            if not secrets.compare_digest(self._token, arguments[0]):
                raise Unavailable(f"environment {self._name} is not attached to any more")
            return None
        if method not in CALLS:
            raise Unavailable(f"environment {self._name} knows no call {method!r}")
        return getattr(self.services, method)(*arguments)

    def _go_down(self) -> None:
        """Somebody who wants it down need not be told that it is going down already."""
        if not self._down.is_set():
            self._obtain("end that first")
            self._end_with(TOLD)

    def _obtain(self, fix: str) -> None:
        """Take the lease. A user's death may not have been noticed yet, and what it used is put in order behind it.

        Raises InUse with the ``fix`` if another user keeps it, Unavailable if this environment is going down.
        """
        begun = time.monotonic()
        while not self._lease.acquire(timeout=POLL):
            if self._down.is_set():
                raise Unavailable(f"environment {self._name} is going down: {self._why_down}")
            user, waited = self._user, time.monotonic() - begun
            if user and waited > IN_USE_SECONDS:
                raise InUse(f"environment {self._name} is in use by process {user}: {fix}")
            if not user and waited > HAND_OVER_SECONDS:
                last = self._last_user
                raise InUse(f"environment {self._name} is being put in order after process {last}: try again soon")

    def _release(self) -> None:
        """Put the services in order before the next one may have them; if they cannot be, end."""
        self._user = None
        self._token = ""
        try:
            self.services.recover()
        except Exception as error:  # whatever it is: nobody may have them as they are now
            self._end_with(f"it was not put in order after process {self._last_user}: {one_line(error)}")
        else:
            self._lease.release()

    def _end_with(self, reason: str) -> None:
        """Have :meth:`serve` return. Whoever calls this keeps the lease."""
        self._why_down = reason
        try:
            print(f"environment {self._name} is going down: {reason}", flush=True)
        finally:  # the log's disk may be full
            self._down.set()


def main() -> None:
    """The holder process: ``NAME ENV OPTIONS TTL``; says on stdout, in one line, that it is ready or what is wrong."""
    name, env, options, ttl = sys.argv[1:]
    with ExitStack() as stack:
        try:
            services = _services(name, env, json.loads(options), stack)
            holder = Holder(name, env, services, float(ttl))
            _say(asdict(holder.prepare()))
            _detach(holder.state / LOG)
            holder.serve()
        except Unavailable as error:
            _say({"error": str(error)})
    os._exit(0)


def _services(name: str, env: str, options: Mapping[str, Any], stack: ExitStack) -> LocalServices | DockerServices:
    try:
        if env == "docker":
            from .docker.environment import open_host
            from .docker.services import DockerServices

            host = open_host(stack, name)
            services: LocalServices | DockerServices = DockerServices(DockerOptions(**options), host)
        else:
            services = LocalServices(LocalOptions(**options), name)
    except FileExistsError:
        if any(environment.name == name for environment in environments()):
            raise Unavailable(f"environment {name} is up already: 'onceproof down --name {name}' ends it") from None
        raise Unavailable(f"environment {name} cannot be had: {_in_its_way(name)}") from None
    stack.callback(services.close)
    return services


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def _detach(log: Path) -> None:
    """Let go of the terminal and of whoever waits for the end of our output."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)


def check_up(name: str) -> NamedEnvironment:
    """The environment of this name, to which one can attach. Raises Unavailable if it is not up."""
    return _find(name, f"'onceproof up --name {name}' starts one")


def _find(name: str, fix: str = "") -> NamedEnvironment:
    check_name(name)
    for environment in environments():
        if environment.name == name:
            return environment
    remove_leftovers()
    others = ", ".join(environment.name for environment in environments())
    way = _in_its_way(name)
    raise Unavailable(
        f"no environment called {name} is up{f' (up: {others})' if others else ''}{way and f', but {way}'}",
        "" if way else fix,
    )


def _in_its_way(name: str) -> str:
    """What is where the state of this environment, which is not up, would be, and what to do; empty for nothing."""
    state = named(name)
    if not os.path.lexists(state):
        return ""
    keeper = _keeper(state)
    if keeper is None:
        return f"{state} is in its way, and no process keeps it: remove it"
    return f"process {keeper.partition(':')[0]} keeps {state}: wait until it is up or gone, or end that process"


def _keeper(state: Path) -> str | None:
    """The guardian that a state directory goes with, if it lives."""
    try:
        identity, _ = (state / OWNER).read_text().split()
        return identity if processes.lives(identity) else None
    except (OSError, ValueError):
        return None


def _connect(environment: NamedEnvironment) -> Connection:
    state = named(environment.name)
    try:
        connection: Connection = Client(str(state / SOCKET), family="AF_UNIX", authkey=(state / KEY).read_bytes())
    except (OSError, EOFError, AuthenticationError) as error:
        raise Unavailable(f"environment {environment.name} does not answer: {error}") from error
    return connection


def _answer(name: str, connection: Connection, method: str, *arguments: Any) -> Any:
    """One request. Raises what the holder raised, or Unavailable if it is gone."""
    try:
        connection.send((method, *arguments))
        good, value = connection.recv()
    except (EOFError, OSError) as error:
        raise Unavailable(f"environment {name} is gone: its holder ended") from error
    if not good:
        raise value
    return value


def _portable(error: Exception) -> Exception:
    """An error that the other side knows, in one line."""
    if type(error) in (Unavailable, EffectError, InUse):
        return error
    if isinstance(error, Unavailable):
        return Unavailable(str(error))
    return Unavailable(f"{type(error).__name__}: {error}")
