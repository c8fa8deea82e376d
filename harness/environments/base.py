"""What a trial may ask of the place it runs in. Nothing above this module knows about processes, containers or ports.

A *process* is named by a reference that its own probe reports: ``place:pid``, where the place is the value of
``ONCEPROOF_PLACE`` in the process's environment (``local``, or a container's service name).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from ...faults.protocols import Address
from ..errors import Unavailable as Unavailable

Side = Literal["job", "harness"]


class WrongOption(ValueError):
    """A value that an environment cannot have: the ``field`` of its options, and ``why``, behind that, in one line."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field} {why}")
        self.field, self.why = field, why


class EffectError(Unavailable):
    """An effect on a process could not be carried out or confirmed. A fault that needs it has not landed: the trial is
    inconclusive. Where the environment itself needs it, there is no verdict."""


class DeadAlready(EffectError):
    """What was to be ended had ended by itself."""


@dataclass(frozen=True)
class Addresses:
    """Where services are found from one side: ``kafka`` bootstrap servers, ``postgres`` a libpq connection string of
    a superuser on the maintenance database, ``redis`` a URL of a user who may do everything, in database 0. None for
    a service that was not asked for."""

    kafka: str | None = None
    postgres: str | None = None
    redis: str | None = None


@dataclass(frozen=True)
class ProbePoint:
    """How probes reach the injector from inside the environment."""

    host: str
    port: int
    token: str


@dataclass(frozen=True)
class DriverSpec:
    """One start of the driver: ``python`` + ``arguments``, with what the harness adds around it.

    ``conf`` are Spark properties above the environment's own; ``driver_rules`` and ``executor_rules`` are Byteman
    scripts (their text); ``python_path`` goes in front of PYTHONPATH in driver and executors; ``variables`` are
    environment variables for driver and executors. ``file_probe``: the program that runs driver and executors where
    changes of files are reported. ``on_cluster``: it has executors, whatever master the environment has.
    """

    arguments: Sequence[str]
    log: Path
    incarnation: int
    injector: ProbePoint
    driver_rules: str
    executor_rules: str
    conf: Mapping[str, str] = field(default_factory=dict)
    jars: Sequence[str] = ()
    trial: str = ""
    python_path: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    file_probe: str | None = None
    on_cluster: bool = False


@dataclass(frozen=True)
class ProcessSpec:
    """One start of the job's interpreter for the sink's own functions, next to the job."""

    arguments: Sequence[str]
    log: Path
    python_path: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Client:
    """A process of a job's that opened a connection: ``place`` and ``pid`` as probes report them, the driver's
    ``mark``, and its ``role``. ``gone`` says whether it runs no more."""

    place: str
    pid: int
    mark: str
    role: str
    gone: Callable[[], bool] = field(default=lambda: True, compare=False)

    def as_fields(self) -> dict[str, Any]:
        return {"place": self.place, "pid": self.pid, "driver": self.mark, "role": self.role}


class Running(Protocol):
    """A process that was started by :meth:`Environment.start_process`."""

    def wait(self, timeout: float) -> int | None:
        """The exit code (negative: the signal), or None if it still runs after ``timeout`` seconds."""

    def kill(self) -> object:
        """End it with all that it started; returns once it is dead."""


class Driver(Protocol):
    """A running driver with everything on its machine: Python, JVM, pyspark.daemon and its workers."""

    process: str

    def holds(self, process: str | None) -> bool:
        """Whether ``process`` runs on this driver's machine."""

    def wait(self, timeout: float) -> int | None:
        """The exit code (negative: the signal), or None if it still runs after ``timeout`` seconds."""

    def kill(self) -> str:
        """The driver's machine dies: stop every process of it, then SIGKILL, and return once all are confirmed dead.

        Returns what was killed, for the journal. Raises EffectError if one of them survives, and DeadAlready if the
        driver had ended before: of what it had left behind, nothing runs then either.
        """

    def terminate(self) -> str:
        """SIGTERM to the main process, which may shut down in an orderly way or not; returns at once."""

    def pause(self) -> str: ...

    def resume(self) -> str: ...

    def alive(self) -> list[str]:
        """References of processes of this driver that still run, orphans included."""

    def processor_seconds(self) -> float | None:
        """Processor time that its processes have used so far; None where it is not known."""


def end_all(driver: Driver) -> str:
    """Kill it, or what it has left behind where it has ended by itself; what became of it, for the journal."""
    try:
        return driver.kill()
    except DeadAlready as error:
        return str(error)


@dataclass(frozen=True)
class Failure:
    """A part of the environment that ended by itself, with the last lines of its log."""

    part: str
    detail: str


class Environment(Protocol):
    """Real Kafka, real Spark, real databases; warm between trials."""

    @property
    def python(self) -> str:
        """The job's interpreter."""

    def provide(self, services: Collection[str]) -> None:
        """Start those of ``kafka``, ``postgres``, ``redis`` that do not run yet. Raises Unavailable."""

    def versions(self) -> dict[str, str]: ...

    def addresses(self, side: Side) -> Addresses: ...

    def shared_directory(self, trial: str) -> Path:
        """A new directory that driver, executors and harness see under the same path."""

    def start_driver(self, spec: DriverSpec) -> Driver: ...

    def start_process(self, spec: ProcessSpec) -> Running: ...

    def job_processes(self, trial: str | None = None) -> list[str]:
        """Processes of a trial's job (None: of any) that still run: drivers, executors, Python workers."""

    def executors(self, trial: str | None = None) -> list[str]:
        """The executors that run apart from the driver, of a trial's newest application (None: of any job's), in the
        order of Spark's ids; none on ``local[n]``."""

    def own_host(self) -> str:
        """The address at which the job's processes reach the harness, and nobody outside does: what listens for them
        binds to it."""

    def client(self, peer: Address, port: int) -> Client | None:
        """The process of a job that opened a connection from ``peer`` to this port of the harness's; None if it has
        ended meanwhile, or is none of a job's."""

    def broker_gate(self) -> Path:
        """The file without which the rules in brokers let everybody go on; it exists while brokers are armed."""

    def arm_brokers(self, rules: str | None, injector: ProbePoint | None) -> None:
        """Restart the brokers with these Byteman rules, and return when they serve. None disarms them."""

    def kill_process(self, process: str) -> str:
        """SIGKILL one executor or Python worker; returns once it is confirmed dead."""

    def terminate_process(self, process: str) -> str:
        """SIGTERM to one executor, which may shut down in an orderly way or not; returns at once."""

    def kill_node(self, process: str) -> str:
        """SIGKILL the machine of Spark's on which this executor runs, with all on it. Raises EffectError."""

    def start_node(self, process: str) -> str:
        """Start the machine again; returns, for the journal, once the cluster has it back."""

    def pause_process(self, process: str) -> str: ...

    def resume_process(self, process: str) -> str: ...

    def shield(self, executor: str) -> Callable[[], None]:
        """Spark's worker, which is told to end an executor that was given up, hears nothing until what is returned is
        called."""

    def brokers(self) -> list[int]:
        """The ids of all brokers."""

    def broker_of(self, process: str) -> int:
        """The broker id that runs as ``process``."""

    def broker_process(self, broker: int) -> str:
        """The process that runs as this broker. Raises EffectError if there is none."""

    def await_broker(self, broker: int) -> str:
        """Returns, for the journal, once it answers by itself. Raises Unavailable if it does not."""

    def kill_broker(self, broker: int) -> str: ...

    def start_broker(self, broker: int) -> str:
        """Start a killed broker again; returns, for the journal, once its new incarnation is registered."""

    def kill_server(self, service: str) -> str:
        """SIGKILL the server of a service, with all of its processes at once. Raises EffectError."""

    def start_server(self, service: str) -> str:
        """Start it again on what it has on its disk; returns, for the journal, once it has recovered and answers."""

    def cut(self, process: str, peer: str | None) -> str:
        """Cut the network between the machine of ``process`` and ``peer``, both ways; returns once nothing passes.

        ``peer`` is ``broker1`` to ``broker3``, ``worker1`` or ``worker2``; None is every other machine of the cluster.
        Probes still reach the injector, and the harness still reaches the brokers. Raises EffectError.
        """

    def heal(self, process: str, peer: str | None) -> str:
        """Undo :meth:`cut`; returns, for the journal, what is connected again. Raises EffectError."""

    def publish(self, path: Path) -> Path:
        """Where driver and executors find a file or directory of the harness's machine: a copy, or itself.

        Raises Unavailable if it is too large to be copied.
        """

    def failures(self, since: float) -> list[Failure]:
        """Parts that died without being asked to; ``since`` is a time of :func:`time.monotonic`."""

    def collect_logs(self, directory: Path) -> None:
        """Copy (or link) the logs of the services since the last call into ``directory``."""

    def close(self) -> None: ...
