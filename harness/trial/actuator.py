"""What faults do to the running system, on the side of the harness."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from ...faults import SERVERS
from ...faults.capabilities import FOLLOWERS, Impairment, Meant, Nth
from ...plans import ActionReference
from ..environments.base import EffectError, Environment, end_all
from ..errors import ObservationError
from ..kafka_transactions import transaction_coordinator
from ..proxies.services import DIRECT, Proxies
from ..runtime import waiting
from ..runtime.waiting import WaitTimeout, wait_for
from .brokers import Brokers
from .checkpoint_changes import CheckpointChanges
from .connections import Connections
from .disk import Disk
from .network import Cut, Network, Record
from .other_query import OtherQueries
from .pauses import Pausable, Pauses
from .restarts import Restartable, Restarts
from .source_reading import SourceReading
from .supervisor import Supervisor

Report = Mapping[str, Any]

One = TypeVar("One")

FETCHED_SECONDS = 1.0
"""How long a leader takes at most to answer what a follower had asked before it was stopped, twice over
(replica.fetch.wait.max.ms: 500): behind that it gives it nothing more."""

AWAKE_SECONDS = 4.0
"""How long an executor that was given up goes on before it is told to end."""

COORDINATOR_SECONDS = 20.0
"""How long the coordinator that follows a dead one is waited for."""


EXECUTOR_POLL = 0.5
"""Seconds between two looks whether an executor has ended."""


@dataclass(frozen=True)
class Ending:
    """What was told to end: how people call it, what of it still runs, and what kills that. ``ended`` says which
    process it was, once it has."""

    name: str
    alive: Callable[[], Sequence[str]]
    kill: Callable[[], str]
    poll: float
    ended: Callable[[], None] = lambda: None


@dataclass
class TrialActuator:
    """What actions do to a trial's environment: implements :class:`onceproof.faults.capabilities.Actuator`.

    Called on the injector's threads, mostly while the reporting thread is parked.

    ``worker_of`` names the Python worker that serves the task of a report, ``executor_of`` the executor that has it.
    ``source`` says how drivers read theirs. ``disk`` knows what is not synced, where the plan takes that away.
    ``changes`` are those that can be made to the query's checkpoint. ``brokers`` knows which of them is what. The job's
    connections pass ``proxies``. ``others`` starts queries beside the trial's. Executors are known by the ``trial``'s
    name.
    """

    environment: Environment
    record: Record
    worker_of: Callable[[Report], str | None]
    executor_of: Callable[[Report], str | None]
    source: SourceReading
    supervisor: Supervisor | None = None
    disk: Disk | None = None
    changes: CheckpointChanges | None = None
    brokers: Brokers | None = None
    proxies: Proxies = DIRECT
    others: OtherQueries | None = None
    trial: str | None = None
    _watches: list[threading.Thread] = field(default_factory=list)
    _ending: dict[ActionReference, Ending] = field(default_factory=dict)
    _network: Network = field(init=False)
    _connections: Connections = field(init=False)
    _pauses: Pauses = field(init=False)
    _restarts: Restarts = field(init=False)

    def __post_init__(self) -> None:
        self._network = Network(self.environment, self.record)
        self._connections = Connections(self.proxies, self.record)
        self._pauses = Pauses(self.record)
        self._restarts = Restarts(self.record)

    @property
    def checkpoint(self) -> CheckpointChanges:
        """Raises EffectError if there is none."""
        if self.changes is None:
            raise EffectError("there is no checkpoint to change")
        return self.changes

    @property
    def queries(self) -> OtherQueries:
        """Raises EffectError if none can be started."""
        if self.others is None:
            raise EffectError("there is no job to start a second query of")
        return self.others

    def stopwatch(self) -> Callable[[], float]:
        """Counts the job's seconds from now on. Raises EffectError."""
        return self._supervisor().stopwatch()

    def kill(
        self,
        target: str,
        point: Report,
        *,
        by: ActionReference | None = None,
        restart_after: float = 0.0,
        which: Meant | None = None,
    ) -> str:
        """Returns what died, once it is confirmed. Raises EffectError."""
        if target == "driver":
            stopped = self._pauses.stopped_by(by.fault, target) if by is not None else None
            return self._supervisor().kill(stopped or point.get("process"), restart_after)
        if target == "broker":
            return self._kill_brokers(self._brokers(point, which), point, restart_after)
        if target in SERVERS:
            return self._kill_server(target, restart_after)
        if target == "node":
            return self._kill_node(self._process("executor", point), restart_after)
        process = self._process(target, point, which)
        detail = self.environment.kill_process(process)
        if target == "executor":
            self._note_end(process, by, detail)
        return detail

    def cut_power(self, target: str, point: Report, *, restart_after: float = 0.0, names_kept: bool = False) -> str:
        """Returns what died, once it is confirmed, and what its disk lost. Raises EffectError."""
        if self.disk is None:
            raise EffectError(f"the {target} loses no power: what is not synced is not known")
        return f"{self.kill(target, point, restart_after=restart_after)}; {self.disk.lose_power(names_kept=names_kept)}"

    def terminate(
        self,
        target: str,
        point: Report,
        *,
        by: ActionReference,
        restart_after: float = 0.0,
        which: Meant | None = None,
    ) -> str:
        """SIGTERM to the driver's main process, or to an executor. Raises EffectError."""
        if target == "executor":
            process = self._process(target, point, which)
            detail = self.environment.terminate_process(process)
            self._ending[by] = Ending(
                process,
                lambda: [one for one in self.environment.executors() if one == process],
                partial(self.environment.kill_process, process),
                EXECUTOR_POLL,
                partial(self._note_end, process, by, detail),
            )
            return detail
        if target != "driver":
            raise EffectError(f"the {target} cannot be told to end: only a driver or an executor can")
        driver, detail = self._supervisor().terminate(point.get("process"), restart_after)
        self._ending[by] = Ending(
            f"{driver.process} and all on its machine", driver.alive, partial(end_all, driver), waiting.POLL
        )
        return detail

    def await_death(self, target: str, seconds: float, *, by: ActionReference) -> str:
        """Returns once nothing of what was told to end runs any more; what still does after so many ``seconds`` is
        killed. Raises EffectError."""
        ending = self._ending.get(by)
        if ending is None:
            raise EffectError(f"no {target} was told to end")
        try:
            wait_for(lambda: not ending.alive(), seconds, f"the {target}'s end", ending.poll, self.stopwatch())
        except WaitTimeout:
            alive = ", ".join(ending.alive())
            detail = f"{alive} still ran {seconds:g} s after SIGTERM: {ending.kill()}"
        else:
            detail = f"{ending.name} ended"
        ending.ended()
        return detail

    def pause(
        self,
        target: str,
        point: Report,
        *,
        by: ActionReference,
        replace: bool = False,
        which: Meant | None = None,
    ) -> str:
        """Stop the processes of ``target``; with ``replace`` the cluster starts another driver in its place.

        ``by`` is the action that stops them. Raises EffectError.
        """
        return self._pauses.begin(by, self._pausable(target, point, replace, which))

    def resume(self, target: str, point: Report, *, paused_by: ActionReference | None = None) -> str:
        """Let processes of ``target`` go on, whichever process reports ``point``: those that ``paused_by`` has stopped,
        without it those that were stopped last. Raises EffectError."""
        if paused_by is not None:
            return self._pauses.end(paused_by)
        return self._pauses.end_last(target) or self._pauses.resume(self._pausable(target, point))

    def cut(self, target: str, point: Report, peer: str | None, seconds: float, *, which: Meant | None = None) -> str:
        """Cut the machine of ``target`` off from ``peer`` (None: from every other one) for ``seconds``.

        Returns once nothing passes. Raises EffectError.
        """
        process = self._driver(point) if target == "driver" else self._process(target, point, which)
        return self._network.cut(Cut(target, process, self._machine(target, process), peer), seconds)

    def impair(self, service: str | None, impairment: Impairment, seconds: float, *, by: ActionReference) -> str:
        """Impair connections to a service, or to all, for ``seconds``. Raises EffectError."""
        return self._connections.impair(service, impairment, seconds, by)

    def reset(self, service: str | None) -> str:
        """End them with a reset. Raises EffectError."""
        return self._connections.reset(service)

    def restore(self, deadline: float) -> list[str]:
        """Once no driver runs any more: heal at once what is still cut or impaired, resume what is still stopped, and
        start what is still away; nothing is cut, stopped or taken away any more. Returns what went wrong."""
        failures = self._network.settle(deadline) + self._connections.settle(deadline) + self._pauses.settle()
        return failures + self._restarts.settle(deadline)  # last: a broker that comes back needs the others

    def settle(self, deadline: float) -> list[str]:
        """:meth:`restore`, and wait until it is known who took over the transactions of killed brokers."""
        failures = self.restore(deadline)
        for thread in self._watches:
            thread.join(deadline)
        return failures + [f"{thread.name} has not ended" for thread in self._watches if thread.is_alive()]

    def _supervisor(self) -> Supervisor:
        if self.supervisor is None:
            raise EffectError("no driver runs yet")
        return self.supervisor

    def _process(self, target: str, point: Report, which: Meant | None = None) -> str:
        if isinstance(which, Nth):
            return self._executor(which)
        if which is not None:
            return self.environment.broker_process(self._brokers(point, which)[0])
        process = self.worker_of(point) if target == "worker" else point.get("process")
        if target == "executor":
            process = self.executor_of(point) if process else next(iter(self.environment.executors(self.trial)), None)
        if not process:
            raise EffectError(f"no {target} is at {point.get('phase', 'that moment')}: there is nothing to act on")
        return str(process)

    def _executor(self, which: Nth) -> str:
        found = self.environment.executors(self.trial)
        if which.number >= len(found):
            there = f"the job has {len(found)}, counted from 0" if found else "the job has none"
            raise EffectError(f"there is no {which} just then: {there}")
        return found[which.number]

    def _note_end(self, process: str, by: ActionReference | None, detail: str) -> None:
        of = by.as_fields() if by else {}
        self.record("process.ended", {**of, "target": "executor", "process": process, "detail": detail})

    def _pausable(self, target: str, point: Report, replace: bool = False, which: Meant | None = None) -> Pausable:
        stop, resume = self.environment.pause_process, self.environment.resume_process
        if which is not None and not isinstance(which, Nth):
            brokers = self._brokers(point, which)
            processes = [self.environment.broker_process(broker) for broker in brokers]
            settled = FETCHED_SECONDS if which.role == FOLLOWERS else 0.0
            return Pausable(
                target,
                ", ".join(processes),
                lambda: _and_wait(_all_of(stop, processes), settled),
                partial(_all_of, resume, processes),
                partial(_all_of, self.environment.await_broker, brokers),
            )
        if target != "driver":
            process = self._process(target, point, which)
            if target == "executor" and replace:
                return self._given_up(process, str(point.get("process") or process) if which is None else process)
            return Pausable(target, process, partial(stop, process), partial(resume, process))
        incarnation = self._supervisor().driver_of(point.get("process"))
        driver = incarnation.driver
        stop_driver = partial(self._supervisor().replace, incarnation) if replace else driver.pause
        return Pausable(target, driver.process, stop_driver, driver.resume)

    def _given_up(self, executor: str, parked: str) -> Pausable:
        """An executor that is given up for its silence, and goes on for a while, as if it could not be reached: driver
        and worker tell it to end (SPARK-13519). If its Python is ``parked``, the JVM stands still for longer; else the
        worker does."""
        shields: list[Callable[[], None]] = []

        def stop() -> str:
            shields.append(self.environment.shield(executor))
            return self.environment.pause_process(executor)

        def resume() -> str:
            try:
                return self.environment.resume_process(parked)
            finally:
                self._watch(f"the end of {executor}", partial(_later, AWAKE_SECONDS, end))

        def end() -> None:
            with suppress(EffectError):  # it has ended
                self.environment.resume_process(executor)
            while shields:
                shields.pop()()

        def answer() -> str:
            if executor not in self.environment.executors(self.trial):
                return f"{parked} went on, and has ended"
            return f"{parked} goes on, and is not told to end for {AWAKE_SECONDS:g} s"

        return Pausable("executor", executor, stop, resume, answer)

    def _watch(self, name: str, act: Callable[[], object]) -> None:
        """Beside the trial, whose end waits for it."""
        watch = threading.Thread(target=act, name=name, daemon=True)
        self._watches.append(watch)
        watch.start()

    def _driver(self, point: Report) -> str:
        return self._supervisor().driver_of(point.get("process")).driver.process

    def _machine(self, target: str, process: str) -> str:
        """The name that a plan has for the machine of ``process``, if it has one."""
        return f"broker{self.environment.broker_of(process)}" if target == "broker" else process.rpartition(":")[0]

    def _brokers(self, point: Report, which: Meant | None) -> list[int]:
        if which is None or isinstance(which, Nth):
            return [self.environment.broker_of(self._process("broker", point))]
        if self.brokers is None:
            raise EffectError(f"no broker is found that is {which}")
        try:
            return self.brokers.find(which, point)
        except ObservationError as error:
            raise EffectError(f"which broker is {which}: {error}") from error

    def _kill_brokers(self, brokers: list[int], point: Report, restart_after: float) -> str:
        """Several are one part of the environment: they come back together, because alone they have no quorum."""
        identity = brokers[0] if len(brokers) == 1 else f"brokers {' and '.join(map(str, brokers))}"
        kill, start = (
            partial(_all_of, call, brokers) for call in (self.environment.kill_broker, self.environment.start_broker)
        )
        detail, restart = self._restarts.kill(Restartable("broker", identity, kill, start), restart_after)
        if "transactional_id" in point and len(brokers) == 1:
            arguments = (str(point["transactional_id"]), brokers[0], restart)
            self._watch(f"coordinator after broker {brokers[0]}", partial(self._watch_coordinator, *arguments))
        return detail

    def _kill_node(self, process: str, restart_after: float) -> str:
        kill, start = partial(self.environment.kill_node, process), partial(self.environment.start_node, process)
        return self._restarts.kill(Restartable("node", process.partition(":")[0], kill, start), restart_after)[0]

    def _kill_server(self, service: str, restart_after: float) -> str:
        kill, start = partial(self.environment.kill_server, service), partial(self.environment.start_server, service)
        return self._restarts.kill(Restartable("server", service, kill, start, back="back"), restart_after)[0]

    def _watch_coordinator(self, transactional_id: str, dead: int, restart: threading.Thread) -> None:
        """Say which broker takes the transaction over: another one, or the dead one once it is back.

        What cannot be seen is not said: the transaction's end is what the verdict needs.
        """
        bootstrap = str(self.environment.addresses("harness").kafka)

        def taken_over() -> int | None:
            back = not restart.is_alive()
            with suppress(ObservationError):  # while the brokers elect a new leader
                found = transaction_coordinator(bootstrap, transactional_id)
                return found if found is not None and (found != dead or back) else None
            return None

        with suppress(WaitTimeout):
            coordinator = wait_for(taken_over, COORDINATOR_SECONDS, "a coordinator of the transaction", poll=0.2)
            fields = {"transactional_id": transactional_id, "before": dead, "broker": coordinator}
            self.record("txn.coordinator", fields)


def _later(seconds: float, act: Callable[[], object]) -> None:
    threading.Event().wait(seconds)
    act()


def _and_wait(detail: str, seconds: float) -> str:
    threading.Event().wait(seconds)
    return detail


def _all_of(call: Callable[[One], str], brokers: Sequence[One]) -> str:
    """Of each broker, at the same time."""
    with ThreadPoolExecutor(len(brokers)) as pool:
        return "; ".join(pool.map(call, brokers))
