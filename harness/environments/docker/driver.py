"""A driver in a container of its own: how it is started, and how its machine dies."""

from __future__ import annotations

import json
import shutil
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from docker.errors import DockerException
from docker.models.containers import Container
from requests.exceptions import RequestException

from ...errors import one_line
from ...runtime.leftovers import disk_errors
from ..base import DeadAlready, EffectError, Unavailable
from . import containers

START = "start.json"
SIGNALLED = 128
"""A container's exit code above it is that of a process which died by the signal of that number less."""


class DockerDriver:
    """One start of a driver's container, for one trial. ``place`` is what its processes report of themselves."""

    def __init__(self, container: Container, place: str, trial: str, directory: Path, log: Path) -> None:
        self.container = container
        self.place = place
        self.trial = trial
        self.directory = directory
        self.process = f"{place}:1"
        self._log = log
        self._code: int | None = None
        self._planned = False
        self._failure: str | None = None
        self._ended = threading.Event()
        threading.Thread(target=self._await_end, name=f"end of {place}", daemon=True).start()

    def holds(self, process: str | None) -> bool:
        return not self._ended.is_set() and str(process).partition(":")[0] == self.place

    def wait(self, timeout: float) -> int | None:
        self._ended.wait(timeout)
        return self._code

    def kill(self) -> str:
        self._planned = True
        if self._ended.is_set():
            raise DeadAlready(f"the driver was not killed: container {self.container.name} has ended already")
        detail = containers.kill(self.container, "driver")
        if not self._ended.wait(containers.SECONDS):
            raise EffectError(f"the driver was not killed: the end of container {self.container.name} was not noticed")
        return detail

    def terminate(self) -> str:
        self._planned = True
        return containers.terminate(self.container, "driver")

    def pause(self) -> str:
        return containers.pause(self.container, "driver")

    def resume(self) -> str:
        return containers.resume(self.container, "driver")

    def alive(self) -> list[str]:
        return [] if self._ended.is_set() else [self.process]

    def processor_seconds(self) -> float | None:
        return containers.processor_seconds(self.container)

    def failure(self) -> str | None:
        """What went wrong by itself: the container had too little memory, or its log was not copied. Said once."""
        found, self._failure = self._failure, None
        return found

    def discard(self) -> bool:
        """Remove the driver's own files if nothing of it runs any more; whether nothing is left to do or report."""
        if self._ended.is_set():
            shutil.rmtree(self.directory, ignore_errors=True)
        return self._ended.is_set() and not self._failure and not self.directory.exists()

    def _await_end(self) -> None:
        """Until this driver has ended for everybody, no other one is started in its container."""
        code = -signal.SIGKILL  # of a container that was removed: this environment is closed
        try:
            with suppress(EffectError):
                code = _exit_code(self.container)
                if not self._planned and containers.state_of(self.container).get("OOMKilled"):
                    self._failure = containers.why_ended(self.container)
            self._copy_log()
        finally:
            self._code = code
            self._ended.set()

    def _copy_log(self) -> None:
        try:
            with (self.directory / "driver.log").open("rb") as inside:
                text = inside.read()
            with disk_errors(), self._log.open("ab") as log:
                log.write(text)
        except FileNotFoundError:
            return
        except (OSError, Unavailable) as error:
            self._failure = self._failure or f"its log was not copied: {one_line(error)}"


def start_driver(
    container: Container, shared: Path, directory: Path, command: Sequence[str], environment: Mapping[str, str]
) -> None:
    """Have the container run ``command``: role.py finds it under the container's host name. Raises EffectError."""
    place = shared / "drivers" / str(container.id)[:12]
    document = {
        "command": list(command),
        "environment": dict(environment),
        "directory": str(directory / "tmp"),
        "log": str(directory / "driver.log"),
    }
    with disk_errors():
        for each in (place.parent, place):  # not parents=True: see host.directory
            each.mkdir(exist_ok=True)
        (place / START).write_text(json.dumps(document), encoding="utf-8")
    containers.start(container, "driver")


def _exit_code(container: Container) -> int:
    """Blocks until the container has ended; negative for a signal, as in :mod:`subprocess`."""
    while True:
        try:
            code = int(container.wait(timeout=3600)["StatusCode"])
        except (DockerException, RequestException):
            if not containers.running(container):
                code = int(containers.state_of(container)["ExitCode"])
            else:
                continue
        return SIGNALLED - code if code > SIGNALLED else code


Make = Callable[[int], list[Container]]
"""Makes driver containers until there are so many; returns them all."""


class DriverPool:
    """The containers for drivers. A trial's next driver is a start of the same container, if that has ended."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._closed = False
        self._last: dict[str, str] = {}
        self._taken: dict[str, DockerDriver | None] = {}

    def take(self, trial: str) -> Container:
        """A container in which nothing runs; taken until :meth:`put`'s driver has ended. Raises Unavailable."""
        with self._lock:
            if self._closed:
                raise Unavailable("this environment is closed")
            found = self._make(1)
            free = [one for one in found if self._is_free(str(one.id))]
            if not free:
                found = self._make(len(found) + 1)
                free = [one for one in found if self._is_free(str(one.id))]
            chosen = next((one for one in free if self._last.get(str(one.id)) == trial), free[0])
            self._last[str(chosen.id)] = trial
            self._taken[str(chosen.id)] = None
            return chosen

    def put(self, driver: DockerDriver) -> None:
        with self._lock:
            self._taken[str(driver.container.id)] = driver

    def close(self) -> None:
        """No container is made any more once this returns."""
        with self._lock:
            self._closed = True

    def free(self, container: Container) -> None:
        """Give back a container that could not be started."""
        with self._lock:
            self._taken.pop(str(container.id), None)

    def _is_free(self, identity: str) -> bool:
        if identity not in self._taken:
            return True
        driver = self._taken[identity]
        return driver is not None and driver.wait(0) is not None
