"""A warm environment with the run directories of its trials: what the command line and the pytest plugin drive."""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from ..assertions import Guarantee, Workload
from ..faults import Plan, PlanError, Rendezvous, ResolvedPlan, SinkShape, parse, parse_located, resolve
from ..faults.settings import check_property, settings_of
from .artifacts import Artifacts
from .artifacts.lock import is_coordinates
from .environments.base import Environment
from .environments.docker.options import BROKERS, DockerOptions
from .environments.holder import attach, check_up, environments
from .environments.local import LocalOptions, open_local
from .errors import UsageError
from .jobs import Job, check_job, find_job, reference_jobs, shape_with
from .run_directories import LOGS, RUNS, new_run_directory
from .sinks import Sink, SinkProcess, brokers_wanted, check_release, find_sink, release_wanted
from .spark import spark_of
from .targets import services_of
from .trial.record import write_trial
from .trial.spec import TrialResult, TrialSpec
from .trial.trial import run_trial
from .triggers import check_execution
from .watched_files import no_files

DEFAULT_MASTER = {"local": "local[2,4]", "docker": "standalone"}
DEFAULT_BROKERS = {"local": 1, "docker": BROKERS}

SETTLED = {
    "env": "--env",
    "master": "--master",
    "brokers": "--brokers",
    "python": "--python",
    "lean": "--own-settings",
    "image": "--image",
    "compose_files": "--compose-file",
}
"""What an environment that is up has settled: fields of EnvironmentOptions (and of NamedEnvironment), and the options
that choose them."""


MOST_RECORDS = 1_000_000
"""Of an input, those of aborted transactions included. So many take a minute to compute, before anything starts."""

OTHER_RELEASE = "give --python an interpreter, or --image an image, that has such a release"


@dataclass(frozen=True)
class EnvironmentOptions:
    """Which environment to have, and where to keep the runs.

    ``master`` None is ``local[2,4]`` in the local environment (a task may fail three times, as on a cluster) and
    ``standalone`` in Docker. ``image`` and ``compose_files`` are for Docker only. ``attach`` is the name of an
    environment that is up.
    """

    env: str = "local"
    master: str | None = None
    brokers: int | None = None
    python: str = sys.executable
    lean: bool = True
    attach: str | None = None
    image: str | None = None
    compose_files: tuple[str, ...] = ()
    runs: Path = RUNS
    sink_deadline: float = 60.0


@dataclass(frozen=True)
class Request:
    """A trial as it is asked for. ``claim`` None is the sink's own; ``readable``: see :class:`TrialSpec`."""

    sink: str
    plan: str = ""
    claim: Guarantee | None = None
    workload: Workload = field(default_factory=Workload)
    trace: bool = False
    every_line: bool = False
    conf: Mapping[str, str] = field(default_factory=dict)
    jars: Sequence[str] = ()
    deadline: float = 90.0
    settle_deadline: float = 15.0
    directory: Path | None = None
    watch: bool = True
    readable: bool = False
    job: str | None = None
    """the path of the job's file; None is jobs/passthrough.py"""
    expect: str | None = None
    """the path of the job's expectation; None is the .sql file next to it"""
    trigger: str | None = None
    """as the job's --trigger has it; None: the job is not told"""
    keep: bool = False
    """whether the files of target.directory stay in the run directory"""
    own_services: Mapping[str, str] = field(default_factory=dict)
    """HOST:PORT of the user's own, by the names by which the sink finds them in target.proxy"""


def resolve_plan(
    text: str,
    job: Job,
    sink: Path,
    options: EnvironmentOptions,
    *,
    trace: bool = False,
    trigger: str | None = None,
    own_services: Collection[str] = (),
    batches: int | None = None,
) -> tuple[Plan, ResolvedPlan]:
    """Parse a plan and check it against job, sink, trigger, the user's own services and environment; starts nothing.
    ``batches`` of the input; None where none that a plan names is refused. Raises UsageError."""
    _, master = where(options)
    try:
        located = parse_located(text)
        shape = shape_with(job, sink, trigger, own_services)
        known = batches if _cuts_as_planned(job, shape) else None
        resolved = resolve(located, shape, master, **_abilities(options), trace=trace, batches=known)
    except PlanError as error:
        raise UsageError(str(error)) from error
    return resolved.plan, resolved


def _cuts_as_planned(job: Job, shape: SinkShape) -> bool:
    """Whether the job surely has the batches of its input, and no more: one that keeps state has some without rows."""
    return job.path in reference_jobs() and shape.execution == "micro-batch" and not shape.stateful


def as_set(request: Request, plan: Plan) -> Request:
    """The request with what the plan sets, which goes before what was asked for. Raises UsageError for an input that is
    too large, and for a property of Spark's that is the environment's own."""
    settings = settings_of(plan.settings)
    workload = replace(request.workload, **settings.workload)
    check_size(workload)
    check_properties(request.conf)
    return replace(request, workload=workload, conf={**request.conf, **settings.spark})


def check_size(workload: Workload) -> None:
    """Raises UsageError for an input that takes too long to compute."""
    records = workload.batches * workload.partitions * workload.window
    if records > MOST_RECORDS:
        raise UsageError(
            f"batches {workload.batches} with rows {workload.rows} and partitions {workload.partitions} make an input "
            f"of {records} records: give fewer, for at most {MOST_RECORDS}"
        )


def check_properties(names: Iterable[str]) -> None:
    """Raises UsageError for a property of Spark's that the environment has from elsewhere."""
    try:
        for name in names:
            check_property(name)
    except ValueError as error:
        raise UsageError(f"--conf {error}") from error


def with_brokers(options: EnvironmentOptions, text: str, sink: Path | None = None) -> EnvironmentOptions:
    """The options with as many brokers as the plan needs, else the sink (BROKERS), where nothing else is asked for.
    Raises UsageError."""
    try:
        wanted = settings_of(parse(text).settings).brokers
    except PlanError as error:
        raise UsageError(str(error)) from error
    if wanted is None and sink is not None:
        wanted = brokers_wanted(sink)
    if wanted is None or options.brokers is not None or options.attach is not None or options.env != "local":
        return options
    return replace(options, brokers=wanted)


def refusal(plan: Plan, shape: SinkShape, options: EnvironmentOptions) -> str | None:
    """Why this plan cannot be carried out with a sink of this shape in this environment; None if it can."""
    _, master = where(options)
    try:
        resolve(plan, shape, master, **_abilities(options))
    except PlanError as error:
        return error.message
    return None


def _abilities(options: EnvironmentOptions) -> dict[str, Any]:
    """What :func:`onceproof.faults.resolve` is told of the environment."""
    env, _ = where(options)
    brokers = attached(options).brokers
    return {"network": env == "docker", "brokers": _brokers(env, brokers), "no_files": no_files()}


def _brokers(env: str, wanted: int | None) -> int:
    return DEFAULT_BROKERS[env] if wanted is None else wanted


def check_environment(options: EnvironmentOptions) -> None:
    """What can be said of an environment before it is opened, and before there is a run directory.

    Raises UsageError for one that cannot be, Unavailable where none of that name is up, or for an interpreter without
    Spark.
    """
    if options.attach is not None:
        check_up(options.attach)
        return
    own = options_of(options)
    if isinstance(own, LocalOptions) and own.python != sys.executable:
        spark_of(own.python)


def open_environment(options: EnvironmentOptions) -> Environment:
    """One of our own, or the one that ``up`` left. Raises UsageError or Unavailable."""
    if options.attach is not None:
        return attach(options.attach)
    own = options_of(options)
    if isinstance(own, DockerOptions):
        from .environments.docker.environment import open_docker

        return open_docker(own)
    return open_local(own)


def attached(options: EnvironmentOptions, given: Collection[str] = ()) -> EnvironmentOptions:
    """The options as the environment has them that they are attached to; without one, or if it is not up, as they are.

    Raises UsageError for a field which is among those ``given``, and which that environment has otherwise.
    """
    if options.attach is None:
        return options
    up = next((one for one in environments() if one.name == options.attach), None)
    if up is None:
        return options
    asked = replace(options, compose_files=_files(options))
    has = {name: getattr(up, name) for name in SETTLED} | {"compose_files": tuple(up.compose_files)}
    for name in SETTLED:
        if name in given and getattr(asked, name) != has[name]:
            started = _written(name, has[name])
            raise UsageError(
                f"{_written(name, getattr(asked, name))} does not fit --attach {up.name}, which was started "
                f"{f'with {started}' if started else 'without it'}: leave it out, or start another environment with "
                "'onceproof up'"
            )
    return replace(options, **has | {"python": up.python or options.python})


def _written(name: str, value: object) -> str:
    """A field as its option on the command line; empty where it is chosen by none."""
    if value is None or value is True or value == ():
        return ""
    words = () if value is False else value if isinstance(value, tuple) else (value,)
    return " ".join([SETTLED[name], *map(str, words)])


def _files(options: EnvironmentOptions) -> tuple[str, ...]:
    return tuple(str(Path(file).resolve()) for file in options.compose_files)


def options_of(options: EnvironmentOptions) -> LocalOptions | DockerOptions:
    """What is chosen of an environment of one's own. Raises UsageError."""
    env, master = where(options)
    if env == "local" and (options.image is not None or options.compose_files):
        raise UsageError("--image and --compose-file choose containers: give --env docker with them")
    for file in options.compose_files:
        if not Path(file).is_file():
            raise UsageError(f"--compose-file {file} does not exist: give the path of an override file for compose")
    brokers = _brokers(env, options.brokers)
    try:
        if env == "docker":
            return DockerOptions(master, options.lean, options.image, _files(options), brokers)
        return LocalOptions(master=master, brokers=brokers, lean=options.lean, python=options.python)
    except ValueError as error:
        raise UsageError(str(error)) from error


def where(options: EnvironmentOptions) -> tuple[str, str]:
    """The kind of environment and the Spark master that trials will have. Raises UsageError for an unknown kind."""
    if options.env not in DEFAULT_MASTER:
        raise UsageError(f"--env {options.env!r} is unknown: it is one of {', '.join(DEFAULT_MASTER)}")
    return options.env, DEFAULT_MASTER[options.env] if options.master is None else options.master


class Session:
    """Owns an environment, or is attached to one, and keeps it warm between its trials.

    Safe to use from several threads: each trial gets its own process for the sink's functions. Never more than
    ``at_once`` trials run at the same time; further ones wait for their turn.
    """

    def __init__(self, options: EnvironmentOptions, at_once: int | None = None) -> None:
        self._options = attached(options)
        self._turn = threading.BoundedSemaphore(at_once) if at_once else nullcontext()
        self._stack = ExitStack()
        self._lock = threading.Lock()
        self._environment: Environment | None = None
        self._rendezvous: Rendezvous | None = None
        self._sinks: dict[Path, Sink] = {}
        self._fetched: dict[Path, list[str]] = {}
        self._checked: set[tuple[Job, Path, Workload]] = set()

    @property
    def options(self) -> EnvironmentOptions:
        """As its environment has them: see :func:`attached`."""
        return self._options

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End everything that it started. Raises what the environment's end raises."""
        self._stack.close()

    @property
    def environment(self) -> Environment:
        with self._lock:
            if self._environment is None:
                self._environment = open_environment(self._options)
                self._stack.callback(self._environment.close)
            return self._environment

    def _serving(self) -> Rendezvous:
        """What the probes of all trials report to; it ends before the environment does."""
        host = self.environment.own_host()
        with self._lock:
            if self._rendezvous is None:
                self._rendezvous = self._stack.enter_context(Rendezvous(host))
            return self._rendezvous

    def trial(self, request: Request) -> TrialResult:
        """Run one trial and keep it in its run directory."""
        job, path = find_job(request.job, request.expect), find_sink(request.sink)
        plan, resolved = resolve_plan(
            request.plan,
            job,
            path,
            self._options,
            trace=request.trace,
            trigger=request.trigger,
            own_services=request.own_services,
        )
        request = as_set(request, plan)
        check_execution(request.trigger, resolved.shape, request.workload.partitions, resolved.master)
        directory = new_run_directory(self._options.runs, request.directory)
        with self._process(path, directory / LOGS) as process:
            spec = self._spec(request, job, plan, resolved, self._load(path, process))
            with self._turn:
                result = run_trial(spec, self.environment, process, directory, self._serving())
                write_trial(result)
        return result

    def _process(self, path: Path, logs: Path) -> SinkProcess:
        """A new one for each trial: what a sink keeps in its modules, such as a connection, is of that trial alone."""
        return SinkProcess(path, self.environment, logs / f"sink-{path.stem}.log", self._options.sink_deadline)

    def _spec(self, request: Request, job: Job, plan: Plan, resolved: ResolvedPlan, sink: Sink) -> TrialSpec:
        """What the trial needs is started by then. Raises SinkError, UsageError, Unavailable."""
        self._check(job, sink, request.workload)
        self.environment.provide({"kafka"} | services_of(sink.services))
        return TrialSpec(
            sink=sink,
            job=job,
            plan=plan,
            resolved=resolved,
            claim=request.claim or sink.guarantee,
            workload=request.workload,
            trace=request.trace,
            every_line=request.every_line,
            conf={**sink.conf, **request.conf},
            jars=[*request.jars, *self._jars(sink)],
            deadline=request.deadline,
            settle_deadline=request.settle_deadline,
            watch=request.watch,
            readable=request.readable,
            trigger=request.trigger,
            keep=request.keep,
            own_services=request.own_services,
        )

    def _load(self, path: Path, process: SinkProcess) -> Sink:
        """Load a sink; cached. Raises SinkError."""
        if path not in self._sinks:
            self._sinks[path] = process.describe()
        return self._sinks[path]

    def _jars(self, sink: Sink) -> list[str]:
        """The files of what the sink's JARS name; fetched once. Raises Unavailable."""
        if sink.path not in self._fetched:
            artifacts = Artifacts.open(progress=True)
            self._fetched[sink.path] = [
                str(artifacts.by_coordinates(jar)) if is_coordinates(jar) else jar for jar in sink.jars
            ]
        return self._fetched[sink.path]

    def _check(self, job: Job, sink: Sink, workload: Workload) -> None:
        """See :func:`check_job` and :func:`check_release`; each combination once."""
        if (job, sink.path, workload) not in self._checked:
            check_job(job, workload, sink)
            for path in (sink.path, job.path):
                if release_wanted(path) is not None:
                    check_release(path, self.environment.versions()["spark"], OTHER_RELEASE)
            self._checked.add((job, sink.path, workload))
