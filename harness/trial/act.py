"""The middle of a trial: the job runs under supervision while the injector executes the plan."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...assertions import Glimpse
from ...faults import PHASES, Injector, Rendezvous, ResolvedPlan
from ...faults.probes import FILE_PROBE, PYTHON_PROBE, rules
from ...faults.probes.rule import Side
from ...faults.settings import settings_of
from ..environments.base import Driver, DriverSpec, Environment, ProbePoint
from ..errors import ObservationError
from ..proxies.services import Proxies
from ..runtime.waiting import WaitTimeout, wait_for
from ..sink_process import SinkProcess
from ..triggers import trigger_of
from . import checkpoint
from .actuator import TrialActuator
from .arrange import Resources, new_name, with_targets
from .brokers import Brokers
from .checkpoint_changes import CheckpointChanges
from .disk import Disk
from .driver_log import error_in
from .journal import Journal
from .other_query import OtherQueries
from .processed import Processed
from .progress import TrialProgress
from .settle import Settler
from .source import await_end
from .source_reading import SourceReading
from .spec import TrialSpec
from .supervisor import JobOutcome, Supervisor
from .watch import Watch

Record = Callable[[str, Mapping[str, Any]], None]
"""Takes an event of the journal with its fields."""


@dataclass(frozen=True)
class Acted:
    """How the act ended. ``leftovers`` are processes of the job that were still there and had to be ended."""

    outcome: JobOutcome
    fired: bool
    broken: list[str]
    """what went wrong with the environment's own restarts"""
    glimpses: list[Glimpse] = field(default_factory=list)
    """readings while the job was under way"""


def act(
    spec: TrialSpec,
    environment: Environment,
    sink_process: SinkProcess,
    resources: Resources,
    proxies: Proxies,
    journal: Journal,
    directory: Path,
    arranged: Future[Any],
    rendezvous: Rendezvous,
    processed: Processed,
    settler: Settler | None = None,
) -> Acted:
    """Run the job to its end under the plan; no driver runs any more when this returns or raises.

    The driver's start does not wait for the input: its query does, until ``arranged`` is done. Probes report by
    ``rendezvous``, and requests that pass ``proxies`` are points. With a ``settler`` the target is read while the job
    is under way.
    """
    progress = TrialProgress(spec.plan)
    progress.wait_for_input(arranged)
    watch = Watch(settler, journal, progress, spec.sink.settle) if settler else None
    record = _recorder(journal, progress, watch)
    disk = _disk(spec, resources)
    changes = CheckpointChanges(resources.place, record, _output(resources))
    reading = SourceReading(record)
    brokers = Brokers(environment, resources.source, resources.name, resources.open_in_kafka)
    actuator = TrialActuator(
        environment,
        record,
        _worker_of(journal),
        _executor_of(journal),
        reading,
        disk=disk,
        changes=changes,
        brokers=brokers,
        proxies=proxies,
        trial=resources.name,
    )
    observe = _observer(resources, arranged, watch, disk)
    with ExitStack() as stack:
        injector = stack.enter_context(
            Injector(
                spec.plan,
                actuator,
                record,
                observe=observe,
                rendezvous=rendezvous,
                stopwatch=actuator.stopwatch,
            )
        )
        progress.injector = injector
        stack.enter_context(proxies.attached(injector.receive, injector.token))
        point = ProbePoint(injector.host, injector.port, injector.token)
        if spec.resolved.broker_phases:
            arranged.result()
            await_end(resources.kafka, resources.source)
            stack.enter_context(rendezvous.brokers_of(injector))
            _arm_brokers(environment, rendezvous)
            stack.callback(environment.arm_brokers, None, None)
        stack.callback(actuator.restore, spec.deadline)  # before brokers are disarmed, which may restart them
        starter = _Starter(spec, environment, resources, reading, point, directory)
        supervisor = actuator.supervisor = _supervisor(
            starter, processed, record, progress, _between_drivers(watch, disk)
        )
        stack.callback(supervisor.end)
        others = actuator.others = _others(starter, sink_process, supervisor, record)
        stack.callback(others.end)
        record("trial.armed", {"injector": f"{injector.host}:{injector.port}"})
        injector.start_clock()
        outcome = supervisor.run()
        _finish_actions(injector, spec.deadline)
        broken = actuator.settle(spec.deadline) + [f"the injector failed: {error}" for error in injector.errors]
    return Acted(outcome, progress.fired, broken, watch.glimpses if watch else [])


def _output(resources: Resources) -> Path | None:
    directory = resources.namespace("harness").get("directory")
    return Path(directory) if directory else None


def _finish_actions(injector: Injector, deadline: float) -> None:
    """What is under way when the job ends comes to its end: a request that is late arrives all the same."""
    with suppress(WaitTimeout):
        wait_for(lambda: not injector.acting(), deadline, "the end of the plan's actions")


def _recorder(journal: Journal, progress: TrialProgress, watch: Watch | None) -> Record:
    """Writes an event to the journal and lets everyone know who follows the trial."""

    def record(event: str, fields: Mapping[str, Any]) -> None:
        journal.record(event, fields)
        progress.note(event, fields)
        if watch is not None:
            watch.note(event, fields)

    return record


def _supervisor(
    starter: _Starter,
    processed: Processed,
    record: Record,
    progress: TrialProgress,
    between_drivers: Callable[[], None],
) -> Supervisor:
    return Supervisor(
        start=starter.start,
        complete=lambda: _complete(processed),
        error_of=lambda number: error_in(starter.log(number), starter.sink),
        record=record,
        progress=progress,
        deadline=starter.spec.deadline,
        before_restart=between_drivers,
        stop=None if trigger_of(starter.spec.trigger).ends_by_itself else starter.stop,
        epochs=starter.spec.resolved.shape.execution in ("continuous", "real-time"),
    )


def _complete(processed: Processed) -> bool:
    """A job whose source does not answer is started again: then it finds out itself."""
    try:
        return processed.all()
    except ObservationError:
        return False


def _others(starter: _Starter, sink_process: SinkProcess, supervisor: Supervisor, record: Record) -> OtherQueries:
    spec, environment = starter.spec, starter.environment

    def make() -> Resources:
        source, partitions = starter.resources.source, spec.workload.partitions
        services, copies = spec.own_services, settings_of(spec.plan.settings).copies
        return with_targets(
            new_name(), source, spec.sink, spec.job, partitions, environment, own_services=services, copies=copies
        )

    return OtherQueries(make, starter.start_other, spec.sink, sink_process, supervisor.still, record)


@dataclass(frozen=True)
class _Starter:
    spec: TrialSpec
    environment: Environment
    resources: Resources
    reading: SourceReading
    injector: ProbePoint
    directory: Path

    @property
    def sink(self) -> Path:
        """The sink's file as the job finds it."""
        return self.environment.publish(self.spec.sink.path)

    @property
    def on_cluster(self) -> bool:
        """Whether the plan gives its trial executors."""
        return settings_of(self.spec.plan.settings).master is not None

    def log(self, incarnation: int) -> Path:
        return self.directory / "logs" / f"driver-{incarnation}.log"

    def start(self, incarnation: int) -> Driver:
        spec = self.spec
        return self.environment.start_driver(
            DriverSpec(
                arguments=self._arguments(),
                log=self.log(incarnation),
                incarnation=incarnation,
                injector=self.injector,
                driver_rules=_rules(spec, self.environment, self.injector, "driver"),
                executor_rules=_rules(spec, self.environment, self.injector, "executor"),
                conf={**spec.conf, **self.reading.properties},
                jars=spec.jars,
                trial=self.resources.name,
                on_cluster=self.on_cluster,
                python_path=(str(self.environment.publish(PYTHON_PROBE)), str(self.sink.parent)),
                variables=self._variables() | self._watched_files(),
                file_probe=self._file_probe(),
            )
        )

    def start_other(self, resources: Resources) -> Driver:
        """That of another query, which no probe looks at."""
        spec = self.spec
        return self.environment.start_driver(
            DriverSpec(
                arguments=replace(self, resources=resources)._arguments(),
                log=self.directory / "logs" / f"driver-of-{resources.name}.log",
                incarnation=0,
                injector=self.injector,
                driver_rules="",
                executor_rules="",
                conf=spec.conf,
                jars=spec.jars,
                trial=self.resources.name,
                on_cluster=self.on_cluster,
                python_path=(str(self.sink.parent),),
            )
        )

    def _file_probe(self) -> str | None:
        """What runs the job where changes of files are reported."""
        if self.spec.resolved.files == "none":
            return None
        return str(self.environment.publish(PYTHON_PROBE) / FILE_PROBE)

    def _watched_files(self) -> dict[str, str]:
        """The directories whose files are reported, and what is left out there."""
        if self.spec.resolved.files == "none":
            return {}
        directory = self.resources.namespace("job")["directory"]
        roots = {"checkpoint": str(self.resources.checkpoint), **({"target": directory} if directory else {})}
        left_out = [] if self.spec.resolved.files == "all" else checkpoint.FILES_OF_THE_ENGINE
        return {"ONCEPROOF_FILES": json.dumps({"roots": roots, "left_out": left_out})}

    def _arguments(self) -> tuple[str, ...]:
        addresses = self.environment.addresses("job")
        return (
            str(self.environment.publish(self.spec.job.path)),
            *("--brokers", str(addresses.kafka)),
            *("--topic", self.resources.source),
            *("--checkpoint", str(self.resources.checkpoint)),
            *("--sink", str(self.sink)),
            *("--target", json.dumps(self.resources.namespace("job"))),
            *("--max-offsets", str(self.spec.workload.max_offsets_per_trigger)),
            *self.reading.arguments,
            *self._starts(),
            *self._trigger(),
        )

    def _starts(self) -> tuple[str, ...]:
        """A job that starts its query once need not know this argument."""
        starts = settings_of(self.spec.plan.settings).starts
        return ("--starts", str(starts)) if starts > 1 else ()

    def _trigger(self) -> tuple[str, ...]:
        """A job that is not told of a trigger need not know these arguments."""
        if self.spec.trigger is None:
            return ()
        stop = () if trigger_of(self.spec.trigger).ends_by_itself else ("--stop-file", str(self.stop_file))
        return ("--trigger", self.spec.trigger, *stop)

    @property
    def stop_file(self) -> Path:
        return self.resources.shared / "stop"

    def stop(self) -> None:
        """Ask the job to stop its query."""
        self.stop_file.touch()

    def _variables(self) -> dict[str, str]:
        """What is probed in Python: in a trace, and where every line is asked for, all lines of the sink's directory,
        else those of the plan; and calls."""
        spec, variables = self.spec, dict[str, str]()
        if spec.resolved.lines or spec.every_line:
            variables["ONCEPROOF_LINES"] = str(self.sink)
        if spec.resolved.lines and not (spec.trace or spec.every_line):
            variables["ONCEPROOF_LINE_FILTER"] = line_filter(spec.resolved)
        if spec.resolved.calls:
            variables["ONCEPROOF_CALLS"] = ",".join(sorted(spec.resolved.calls))
        return variables


def line_filter(resolved: ResolvedPlan) -> str:
    """``file.py:42,team/writer.py:57@1@3``: the plan's lines, each with its batches unless it is asked for in any."""
    batches = resolved.line_batches
    of_line = {line: "".join(f"@{batch}" for batch in sorted(batches.get(line, ()))) for line in resolved.lines}
    return ",".join(f"{file}:{line}{of_line[file, line]}" for file, line in sorted(resolved.lines))


def _arm_brokers(environment: Environment, rendezvous: Rendezvous) -> None:
    """Have brokers report every phase of theirs: the rules are the same for all trials of an environment, so that
    brokers are restarted for the first one only."""
    point = ProbePoint(rendezvous.host, rendezvous.port, rendezvous.brokers_token)
    phases = [phase.name for phase in PHASES if phase.where == "broker"]
    text = rules(
        phases,
        "broker",
        spark_version=environment.versions()["spark"],
        host=point.host,
        port=point.port,
        token=point.token,
        gate=str(environment.broker_gate()),
    )
    environment.arm_brokers(text, point)


def _rules(spec: TrialSpec, environment: Environment, injector: ProbePoint, side: Side) -> str:
    shape = spec.resolved.shape
    return rules(
        _points(spec, side),
        side,
        spark_version=environment.versions()["spark"],
        host=injector.host,
        port=injector.port,
        token=injector.token,
        rows=spec.resolved.rows,
        methods=spec.resolved.methods,
        any_sink=not (shape.foreach_batch or shape.file or shape.v2),
    )


def _points(spec: TrialSpec, side: Side) -> list[str | tuple[str, str | None]]:
    """What the rules of driver or executor have to report; ``task.worker`` says which Python worker serves a task."""
    resolved = spec.resolved
    if side == "executor":
        return [*sorted(resolved.executor_points), *(["task.worker"] if resolved.workers else [])]
    helping = ["query.end"]
    if resolved.shape.execution == "async progress":
        helping.append("batch.input")
    if any("longest" in action.arguments for fault in spec.plan.faults for action in fault.actions):
        helping.append("query.writer")
    return [*sorted(resolved.driver_points), *helping]


def _disk(spec: TrialSpec, resources: Resources) -> Disk | None:
    """What knows what is not synced, where the plan takes that away."""
    return Disk(resources.shared, resources.shared / "removed") if spec.resolved.unsynced else None


def _observer(resources: Resources, arranged: Future[Any], watch: Watch | None, disk: Disk | None = None) -> Any:
    """Keeps a query from its start until the input is there, and adds the digest of offsets/N where batch N is planned
    and at each hand-over: a replay must find it byte-equal. Lets ``watch`` read while the point's thread is parked, and
    tells ``disk`` of changes of files."""
    digested = {("batch.offsets", "after"), ("sink.write", "before")}

    def observe(point: Mapping[str, Any]) -> dict[str, Any]:
        if point.get("phase") == "query.start":
            arranged.result()
        digest = None
        if (point.get("phase"), point.get("edge")) in digested and "batch" in point:
            digest = checkpoint.offsets_digest(resources.checkpoint, point["batch"])
        if disk is not None:
            disk.note(point)
        if watch is not None:
            watch.at_point(point)
        return {} if digest is None else {"offsets": digest}

    return observe


def _between_drivers(watch: Watch | None, disk: Disk | None) -> Callable[[], None]:
    """Reads what a dead driver has left."""

    def read() -> None:
        if watch is not None:
            with disk.being_read() if disk is not None else nullcontext():
                watch.after_death()

    return read


def _worker_of(journal: Journal) -> Callable[[Mapping[str, Any]], str | None]:
    """The Python worker that serves the parked task, by the reports of ``task.worker``."""

    return lambda point: _last_of_task(journal, point, "task.worker", "worker")


def _executor_of(journal: Journal) -> Callable[[Mapping[str, Any]], str | None]:
    """The executor that has the parked task, by the reports of its beginning: what is parked may be its Python."""

    def executor_of(point: Mapping[str, Any]) -> str | None:
        if point.get("role") == "executor" or "task" not in point:
            return point.get("process")
        return _last_of_task(journal, point, "task.run", "process")

    return executor_of


def _last_of_task(journal: Journal, point: Mapping[str, Any], phase: str, field: str) -> str | None:
    """What the last report of the phase has in the field, of the task that the point belongs to."""
    found = [
        event[field]
        for event in journal.events("point")
        if event.get("phase") == phase and "task" in point
        if all(event.get(name) == point.get(name) for name in ("run", "task"))
    ]
    return found[-1] if found else None
