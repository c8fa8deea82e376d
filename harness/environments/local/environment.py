"""The local environment: drivers of this process on services that are this process's own, or a holder's."""

from __future__ import annotations

import itertools
import os
import secrets
import signal
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from ....faults.protocols import Address
from ...artifacts import Artifacts
from ...java import find_java
from ...runtime import processes
from ...runtime.guardian import MARK, Guardian
from ...runtime.leftovers import check_temporary, disk_errors, state_directory
from ...runtime.ports import LOOPBACK
from ...spark import spark_of
from ..auxiliary import AuxiliaryProcess, start_auxiliary
from ..base import Addresses, Client, DriverSpec, EffectError, Failure, ProbePoint, ProcessSpec, Side
from ..driver_start import DRIVER, JOB, TRIAL, DriverStart, in_order, is_executor, user_settings
from ..failure_log import FailureLog
from ..host import SPARKS, Host, inherited
from ..spark_master import WORKER_CLASS
from .clients import client_of
from .driver import PLACE, LocalDriver, let_go, reference
from .options import LocalOptions
from .services import LocalServices, Services


class LocalEnvironment:
    """Implements :class:`..base.Environment`. ``guardian`` starts the drivers; ``services`` may have another one."""

    def __init__(self, services: Services, guardian: Guardian, host: Host, stack: ExitStack, name: str) -> None:
        self.services = services
        self.options = services.options()
        self.name = name
        self.python = self.options.python
        self.master = self.options.master
        self._guardian = guardian
        self._host = host
        self._stack = stack
        self._numbers = itertools.count(1)
        self._drivers: list[LocalDriver] = []
        self._start: DriverStart | None = None
        self._lock = threading.Lock()
        self._failures = FailureLog(services.failures)

    def provide(self, services: Collection[str]) -> None:
        self.services.provide(services)

    def versions(self) -> dict[str, str]:
        return self.services.versions()

    def addresses(self, side: Side) -> Addresses:
        return self.services.addresses()

    def shared_directory(self, trial: str) -> Path:
        path = self._host.directory("trials") / trial
        with disk_errors():
            path.mkdir()
        return path

    def start_driver(self, spec: DriverSpec) -> LocalDriver:
        """Start one driver; its log is appended to. Raises Unavailable."""
        self._tidy()
        mark = f"{spec.incarnation}-{secrets.token_hex(6)}"
        directory = self._host.directory("drivers", str(next(self._numbers)))
        with disk_errors():
            spec.log.parent.mkdir(parents=True, exist_ok=True)
            start = self._driver_start(spec)
            variables = inherited(SPARKS) | {"SPARK_LOCAL_IP": LOOPBACK} | start.environment(spec, mark, directory)
            child = self._guardian.spawn(start.command(spec), variables, directory / "tmp", spec.log)
        driver = LocalDriver(child, mark, directory)
        with self._lock:
            self._drivers.append(driver)
        return driver

    def start_process(self, spec: ProcessSpec) -> AuxiliaryProcess:
        own = inherited(SPARKS) | {"ONCEPROOF_PLACE": PLACE}
        return start_auxiliary(self._guardian, spec, self.python, self._host.directory("tmp"), own)

    def job_processes(self, trial: str | None = None) -> list[str]:
        """Processes of any job, or of one trial's: those that say no trial are counted for every one.

        A process that left its driver's tree and cleared its environment says nothing, but it may still write.
        """
        executors = self.services.executor_pids()
        marked = [row.pid for row in processes.table().values() if row.alive and self._of_a_job(row.pid)]
        found = sorted({*executors, *marked, *self._guardian.strays()})
        return [reference(pid) for pid in found if trial is None or _trial_of(pid) in ("", trial)]

    def executors(self, trial: str | None = None) -> list[str]:
        commands = {pid: processes.command(pid) for pid in self.services.executor_pids()}
        return in_order(((reference(pid), words) for pid, words in commands.items() if is_executor(words)), trial)

    def own_host(self) -> str:
        return LOOPBACK

    def client(self, peer: Address, port: int) -> Client | None:
        return client_of(peer, port)

    def broker_gate(self) -> Path:
        """The file without which the rules in brokers let everybody go on; exists while they are armed."""
        return Path(self.services.gate())

    def arm_brokers(self, rules: str | None, injector: ProbePoint | None) -> None:
        """None leaves the agent where it is and closes the gate, which saves a restart."""
        self.services.arm_brokers(rules, injector)

    def kill_process(self, process: str) -> str:
        """SIGKILL an executor or a Python worker together with what it started: they share its machine."""
        row = self._ours(process)
        try:
            ended = processes.end(lambda rows: processes.with_descendants(row, rows))
        except processes.Survivor as error:
            raise EffectError(f"kill of {process}: {error}") from error
        return f"killed {', '.join(map(str, ended))}"

    def terminate_process(self, process: str) -> str:
        row = self._ours(process)
        processes.send(row, signal.SIGTERM)
        return f"sent SIGTERM to {row}"

    def kill_node(self, process: str) -> str:
        raise EffectError(f"{process} has no machine of its own: in the local environment all machines are one")

    def start_node(self, process: str) -> str:
        raise EffectError(f"{process} has no machine of its own: in the local environment all machines are one")

    def pause_process(self, process: str) -> str:
        row = self._ours(process)
        try:
            stopped = processes.freeze(lambda rows: processes.with_descendants(row, rows))
        except processes.Survivor as error:
            raise EffectError(f"pause of {process}: {error}") from error
        return f"stopped {', '.join(map(str, stopped))}"

    def resume_process(self, process: str) -> str:
        row = self._ours(process)
        stopped = [
            each for each in processes.with_descendants(row, processes.table()) if each.state in processes.STOPPED
        ]
        return f"resumed {', '.join(map(str, let_go(stopped))) or 'nothing: it was not stopped'}"

    def shield(self, executor: str) -> Callable[[], None]:
        rows = processes.table()
        row = rows.get(_pid_of(executor))
        while row is not None and WORKER_CLASS not in processes.command(row.pid):
            row = rows.get(row.parent)
        if row is None:
            return lambda: None
        processes.send(row, signal.SIGSTOP)
        return partial(processes.send, row, signal.SIGCONT)

    def broker_of(self, process: str) -> int:
        return self.services.broker_of(_pid_of(process))

    def brokers(self) -> list[int]:
        return self.services.brokers()

    def broker_process(self, broker: int) -> str:
        return reference(self.services.broker_process(broker))

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
        raise EffectError(f"{process} cannot be cut off: in the local environment all machines are one")

    def heal(self, process: str, peer: str | None) -> str:
        raise EffectError(f"{process} was not cut off: in the local environment all machines are one")

    def publish(self, path: Path) -> Path:
        return path

    def failures(self, since: float) -> list[Failure]:
        return self._failures.since(since)

    def collect_logs(self, directory: Path) -> None:
        self.services.collect_logs(str(directory.absolute()))

    def close(self) -> None:
        """End everything that this environment started, by SIGKILL; what a holder holds stays."""
        self._stack.close()

    def _driver_start(self, spec: DriverSpec) -> DriverStart:
        start = self._usual_start()
        return replace(start, master=self.services.cluster_url()) if spec.on_cluster else start

    def _usual_start(self) -> DriverStart:
        with self._lock:
            if self._start is None:
                spark = spark_of(self.python)
                self._start = DriverStart(
                    java=find_java(),
                    spark=spark,
                    runtime=Artifacts.open(),
                    master=self.services.master_url(),
                    host=LOOPBACK,
                    bind=LOOPBACK,
                    place=PLACE,
                    lean=self.options.lean,
                    settings={} if self.options.lean else user_settings(spark.home),
                    python_path=os.environ.get("PYTHONPATH", ""),
                )
            return self._start

    def _tidy(self) -> None:
        """Remove what ended drivers and executors left on disk, so that a long series of trials does not fill it."""
        with self._lock:
            for driver in self._drivers:
                driver.discard()
            self._drivers = [driver for driver in self._drivers if driver.directory.exists()]
            self.services.tidy()

    def _of_a_job(self, pid: int) -> bool:
        environment = processes.environment(pid)
        return self._is_guarded(environment) and (DRIVER in environment or JOB in environment)

    def _is_guarded(self, environment: Mapping[str, str]) -> bool:
        return environment.get(MARK) in (self._guardian.identity, self.services.guardian_identity())

    def _ours(self, process: str) -> processes.Process:
        """The living process of this reference. Raises EffectError for any that this environment did not start."""
        pid = _pid_of(process)
        row = processes.look(pid)
        if row is None or not row.alive:
            raise EffectError(f"{process} is dead already")
        if not (self._of_a_job(pid) or pid in self.services.executor_pids() or self._is_broker(pid)):
            raise EffectError(f"{process} ({row.name}) is neither a job's process nor a broker here: it is left alone")
        return row

    def _is_broker(self, pid: int) -> bool:
        try:
            return self.services.broker_of(pid) > 0
        except EffectError:
            return False


def open_local(options: LocalOptions) -> LocalEnvironment:
    """A local environment of one's own; nothing but its guardian runs before it is asked for. Raises Unavailable."""
    with ExitStack() as stack:
        services = LocalServices(options)
        stack.callback(services.close)
        return LocalEnvironment(services, services.guardian, services.host, stack.pop_all(), "local")


def on_services(services: Services, name: str) -> LocalEnvironment:
    """An environment on services that a holder holds: drivers have a guardian and a state directory of their own.

    Raises Unavailable.
    """
    check_temporary()
    with ExitStack() as stack:
        stack.callback(services.close)
        guardian = Guardian.start(name)
        stack.callback(guardian.close)
        host = Host(guardian, state_directory(guardian))
        return LocalEnvironment(services, guardian, host, stack.pop_all(), name)


def _trial_of(pid: int) -> str:
    return processes.environment(pid).get(TRIAL, "")


def _pid_of(process: str) -> int:
    place, _, pid = process.partition(":")
    if place != PLACE or not pid.isdigit():
        raise EffectError(f"{process!r} is not a process here: use {PLACE}:PID")
    return int(pid)
