"""The Docker environment: drivers in containers of their own, on a cluster of containers."""

from __future__ import annotations

import itertools
import re
import secrets
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from docker.models.containers import Container

from ....faults.protocols import Address
from ...runtime.guardian import Guardian
from ...runtime.leftovers import disk_errors, remove_leftovers, state_directory
from ...runtime.ports import LOOPBACK
from ..auxiliary import AuxiliaryProcess, start_auxiliary
from ..base import (
    Addresses,
    Client,
    DriverSpec,
    EffectError,
    Failure,
    ProbePoint,
    ProcessSpec,
    Side,
    Unavailable,
    end_all,
)
from ..driver_start import EXECUTOR, DriverStart, in_order, parse_settings, trial_of
from ..failure_log import FailureLog
from ..host import Host, inherited
from ..spark_master import WORKER_CLASS
from . import containers, network
from .clients import client_in
from .driver import DockerDriver, DriverPool, start_driver
from .options import DockerOptions
from .project import service_of
from .published import copy_directory
from .services import BROKER_NUMBERS, DRIVER, WORKERS, AttachInfo, DockerServices

MASTER_URL = "spark://spark-master:7077"
PLACE = re.compile(r"(?P<kind>broker|worker|driver)-?(?P<number>\d+)(?:\.\d+)?")
"""``broker1``, ``worker2``, ``driver-1``; behind a dot the number of its start, because pids come again."""


class DockerEnvironment:
    """Implements :class:`..base.Environment`. ``guardian`` starts the auxiliary processes, on this machine."""

    def __init__(self, services: DockerServices, stack: ExitStack) -> None:
        self.options = services.options()
        self.services = services
        self._host = services.host
        self._token = secrets.token_hex(4)
        self._stack = stack
        self._lock = threading.RLock()
        self._pool = DriverPool(self.services.drivers)
        self._numbers = itertools.count(1)
        self._starts: Counter[str] = Counter()
        self._drivers: list[DockerDriver] = []
        self._published: dict[Path, Path] = {}
        self._cuts: dict[tuple[str, str | None], network.Cut] = {}
        self._failures = FailureLog(self._find_failures)
        stack.callback(self.services.close)
        stack.callback(self._end_drivers)

    @property
    def python(self) -> str:
        return self.services.image().spark.python

    # -- services ---------------------------------------------------------------------------------------------------

    def provide(self, services: Collection[str]) -> None:
        self.services.provide(services)

    def versions(self) -> dict[str, str]:
        return self.services.versions()

    def addresses(self, side: Side) -> Addresses:
        return self.services.addresses(inside=side == "job")

    def shared_directory(self, trial: str) -> Path:
        path = self.services.shared / "trials" / trial
        with disk_errors():
            path.mkdir()
        return path

    def publish(self, path: Path) -> Path:
        directory = path if path.is_dir() else path.parent
        with self._lock:
            if directory not in self._published:
                place = self.services.shared / "published" / f"{self._token}-{len(self._published)}" / directory.name
                copy_directory(directory, place)
                self._published[directory] = place
            return self._published[directory] / path.relative_to(directory)

    def own_host(self) -> str:
        return self.services.bridge

    def client(self, peer: Address, port: int) -> Client | None:
        try:
            container = self._container_at(peer[0])
            return None if container is None else client_in(container, self.services.tools, peer[1], port)
        except Unavailable:  # the container has ended meanwhile, or the engine does not answer
            return None

    # -- the job ----------------------------------------------------------------------------------------------------

    def start_driver(self, spec: DriverSpec) -> DockerDriver:
        """Start one driver; its log is copied to ``spec.log`` when it has ended. Raises Unavailable."""
        self._tidy()
        container = self._pool.take(spec.trial)
        try:
            driver = self._start_in(container, spec)
        except BaseException as error:
            self._pool.free(container)
            if isinstance(error, EffectError):
                raise Unavailable(f"the driver's container cannot be started: {error}") from error
            raise
        self._pool.put(driver)
        with self._lock:
            self._drivers.append(driver)
        return driver

    def start_process(self, spec: ProcessSpec) -> AuxiliaryProcess:
        own = inherited() | {"ONCEPROOF_PLACE": "harness"}
        return start_auxiliary(self._host.guardian, spec, sys.executable, self._host.directory("tmp"), own)

    def job_processes(self, trial: str | None = None) -> list[str]:
        """Drivers of the trial, and on the workers its executors with what is below them; what is below no executor
        and is not Spark's worker itself may be anybody's."""
        with self._lock:
            drivers = [one for one in self._drivers if trial in (None, one.trial)]
        found = [process for one in drivers for process in one.alive()]
        if self.options.standalone:
            found += [process for worker in WORKERS for process in self._on_worker(worker, trial)]
        return found

    def executors(self, trial: str | None = None) -> list[str]:
        found = []
        for worker in WORKERS if self.options.standalone else ():
            there = containers.inside(self.services.container(worker), self.services.tools, "executors")
            found += [(f"{worker.removeprefix('spark-')}:{pid}", words) for pid, words in there]
        return in_order(found, trial)

    # -- faults -----------------------------------------------------------------------------------------------------

    def kill_process(self, process: str) -> str:
        """SIGKILL an executor or a Python worker inside its container, together with what it started."""
        return f"killed {self._inside('end', process)}"

    def terminate_process(self, process: str) -> str:
        return f"sent SIGTERM to {self._inside('terminate', process)}"

    def kill_node(self, process: str) -> str:
        return self.services.kill_worker(_worker_of(process))

    def start_node(self, process: str) -> str:
        return self.services.start_worker(_worker_of(process))

    def pause_process(self, process: str) -> str:
        place, _ = _split(process)
        if place.startswith("broker"):
            return containers.pause(self._container_of(place), place)
        return f"stopped {self._inside('freeze', process)}"

    def resume_process(self, process: str) -> str:
        place, _ = _split(process)
        if place.startswith("broker"):
            return containers.resume(self._container_of(place), place)
        return f"resumed {self._inside('thaw', process) or 'nothing: it was not stopped'}"

    def shield(self, executor: str) -> Callable[[], None]:
        place, _ = _split(executor)
        there = containers.inside(self._container_of(place), self.services.tools, "workers")
        found = [f"{place}:{pid}" for pid in there]
        for worker in found:
            self._inside("freeze", worker)

        def go_on() -> None:
            for worker in found:
                self._inside("thaw", worker)

        return go_on

    def broker_gate(self) -> Path:
        return self.services.gate()

    def arm_brokers(self, rules: str | None, injector: ProbePoint | None) -> None:
        self.services.arm_brokers(rules, injector)

    def broker_of(self, process: str) -> int:
        place, _ = _split(process)
        match = PLACE.fullmatch(place)
        if match is None or match["kind"] != "broker":
            raise EffectError(f"{process} is not a broker")
        return int(match["number"])

    def brokers(self) -> list[int]:
        return list(BROKER_NUMBERS)

    def broker_process(self, broker: int) -> str:
        return f"broker{broker}:1"

    def await_broker(self, broker: int) -> str:
        return self.services.await_broker(broker)

    def kill_broker(self, broker: int) -> str:
        return self.services.kill_broker(broker)

    def start_broker(self, broker: int) -> str:
        return self.services.start_broker(broker)

    def kill_server(self, service: str) -> str:
        return self.services.kill_server(service)

    def start_server(self, service: str) -> str:
        return self.services.start_server(service)

    def cut(self, process: str, peer: str | None) -> str:
        place, _ = _split(process)
        container = self._container_of(place)
        peers = [self._container_of(peer)] if peer else self._others(container)
        if container.id in [one.id for one in peers]:
            raise EffectError(f"{place} cannot be cut off from itself")
        cut = network.Cut.between(container, peers)
        cut.make()
        self._cuts[place, peer] = cut
        return f"{cut.name} cut from {cut.others_named}"

    def heal(self, process: str, peer: str | None) -> str:
        place, _ = _split(process)
        found = self._cuts.pop((place, peer), None)
        if found is None:
            raise EffectError(f"{place} is not cut off from {peer or 'the others'}")
        found.heal()
        return f"{found.name} connected again with {found.others_named}"

    # -- what happened ----------------------------------------------------------------------------------------------

    def failures(self, since: float) -> list[Failure]:
        return self._failures.since(since)

    def collect_logs(self, directory: Path) -> None:
        self.services.collect_logs(directory.absolute())

    def close(self) -> None:
        """Remove every container, network and volume that this environment made."""
        self._stack.close()

    # -- details ----------------------------------------------------------------------------------------------------

    def _start_in(self, container: Container, spec: DriverSpec) -> DockerDriver:
        number = str(container.name).rpartition("-")[2]
        self._starts[number] += 1
        place = f"driver-{number}.{self._starts[number]}"
        mark = f"{spec.incarnation}-{secrets.token_hex(6)}"
        directory = self.services.shared / "drivers" / f"{self._token}-{next(self._numbers)}"
        start = replace(self._driver_start(), host=str(container.name), place=place)
        jars = [str(self.publish(Path(jar).absolute())) for jar in spec.jars]
        with disk_errors():
            spec.log.parent.mkdir(parents=True, exist_ok=True)
            variables = start.environment(replace(spec, jars=jars), mark, directory)
        start_driver(container, self.services.shared, directory, start.command(spec), variables)
        return DockerDriver(container, place, spec.trial, directory, spec.log)

    def _driver_start(self) -> DriverStart:
        image = self.services.image()
        return DriverStart(
            java=image.java,
            spark=image.spark,
            runtime=image,
            master=MASTER_URL if self.options.standalone else self.options.master,
            host=LOOPBACK,
            bind="0.0.0.0",
            place=DRIVER,
            lean=self.options.lean,
            settings={}
            if self.options.lean
            else parse_settings(image.settings, f"spark-defaults.conf of {image.name}"),
            python_path=image.python_path,
        )

    def _end_drivers(self) -> None:
        self._pool.close()
        for driver in self._drivers:
            if driver.alive():
                end_all(driver)

    def _on_worker(self, worker: str, trial: str | None) -> list[str]:
        """Processes on a worker that belong to the trial, or to nobody who is known."""
        rows = containers.rows_of(self.services.container(worker))
        place = worker.removeprefix("spark-")
        below = {pid: parent for pid, parent, _ in rows}
        executors = {pid: command for pid, _, command in rows if EXECUTOR in command}
        own = {pid for pid, command in executors.items() if trial is None or trial_of(command) in ("", trial)}
        spark = {pid for pid, _, command in rows if WORKER_CLASS in command}
        found = []
        for pid, _, command in rows:
            line = _ancestry(pid, below)
            executor = next((one for one in line if one in executors), None)
            if executor in own or (executor is None and not spark & set(line) and not _is_init(command)):
                found.append(f"{place}:{pid}")
        return found

    def _inside(self, verb: str, process: str) -> str:
        place, pid = _split(process)
        if not place.startswith(("worker", DRIVER)):
            raise EffectError(f"{process} is neither an executor nor a Python worker: it is left alone")
        found = containers.inside(self._container_of(place), self.services.tools, verb, str(pid))
        return ", ".join(found) + f" in {place}" if found else ""

    def _container_of(self, place: str) -> Container:
        match = PLACE.fullmatch(place)
        if match is None:
            raise EffectError(f"{place!r} is not a machine here: use broker1 to broker3, worker1, worker2 or driver-N")
        kind, number = match["kind"], match["number"]
        if kind != DRIVER:
            return self.services.container({"broker": f"kafka{number}", "worker": f"spark-worker{number}"}[kind])
        names = {str(one.name): one for one in self.services.project.containers(DRIVER)}
        found = next((one for name, one in names.items() if name.endswith(f"-driver-{number}")), None)
        if found is None:
            raise EffectError(f"there is no container of {place}")
        return found

    def _container_at(self, address: str) -> Container | None:
        """The machine of a job's that has this address on the project's network."""
        of_jobs = [one for one in self.services.running() if service_of(one) in (DRIVER, *WORKERS)]
        return next((one for one in of_jobs if address in containers.addresses_of(one)), None)

    def _others(self, container: Container) -> list[Container]:
        """Every other running machine of the cluster; other drivers than one that is cut off belong to other trials."""
        among_drivers = service_of(container) == DRIVER
        others = [one for one in self.services.running() if one.id != container.id]
        return [one for one in others if not (among_drivers and service_of(one) == DRIVER)]

    def _find_failures(self) -> list[Failure]:
        with self._lock:
            failed = [(one.place, detail) for one in self._drivers if (detail := one.failure())]
        return self.services.failures() + [Failure(place, detail) for place, detail in failed]

    def _tidy(self) -> None:
        with self._lock:
            self._drivers = [driver for driver in self._drivers if not driver.discard()]


def open_docker(options: DockerOptions) -> DockerEnvironment:
    """A Docker environment of one's own; no container runs before one is asked for. Raises Unavailable."""
    with ExitStack() as stack:
        host = open_host(stack)
        return DockerEnvironment(DockerServices(options, host), stack.pop_all())


def attached(options: DockerOptions, info: AttachInfo, lease: Callable[[], None]) -> DockerEnvironment:
    """An environment on services that a holder holds; ``lease`` gives them back at the end. Raises Unavailable."""
    with ExitStack() as stack:
        stack.callback(lease)
        host = open_host(stack)
        return DockerEnvironment(DockerServices(options, host, info), stack.pop_all())


def open_host(stack: ExitStack, name: str | None = None) -> Host:
    """A guardian with a state directory; ``name`` makes it findable. Raises Unavailable, FileExistsError."""
    remove_leftovers()
    guardian = Guardian.start(name or "docker")
    stack.callback(guardian.close)
    host = Host(guardian, state_directory(guardian, name))
    stack.callback(host.release_ports)
    return host


def _split(process: str) -> tuple[str, int]:
    place, _, pid = process.partition(":")
    if not pid.isdigit():
        raise EffectError(f"{process!r} is not a process here: use PLACE:PID")
    return place, int(pid)


def _worker_of(process: str) -> str:
    """The service on which an executor runs."""
    place, _ = _split(process)
    service = f"spark-{place.partition('.')[0]}"
    if service not in WORKERS:
        raise EffectError(f"{process} is not an executor on a worker")
    return service


def _ancestry(pid: int, parents: dict[int, int]) -> list[int]:
    """The process and all above it in its container."""
    line = []
    while pid in parents and pid not in line:
        line.append(pid)
        pid = parents[pid]
    return line


def _is_init(command: str) -> bool:
    """Docker's init (tini), and the role before it has become the service."""
    return "docker-init" in command or "role.py" in command
