"""A warm environment with the run directories of its trials: what the command line and the pytest plugin drive."""

from __future__ import annotations

import threading
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import TracebackType

from ..assertions import Workload
from ..faults import Plan, Rendezvous, ResolvedPlan
from .artifacts import Artifacts
from .artifacts.lock import is_coordinates
from .environment_options import EnvironmentOptions, attached, open_environment
from .environments.base import Environment
from .jobs import Job, check_job, find_job
from .request import Request, as_set, resolve_plan
from .run_directories import LOGS, OTHER_DIRECTORY, new_run_directory
from .sink_process import SinkProcess
from .sinks import Sink, check_release, find_sink, release_wanted
from .targets import services_of
from .trial.record import write_trial
from .trial.spec import TrialResult, TrialSpec
from .trial.trial import run_trial
from .triggers import check_execution

OTHER_RELEASE = "give --python an interpreter, or --image an image, that has such a release"


class Session:
    """Owns an environment, or is attached to one, and keeps it warm between its trials.

    Safe to use from several threads: each trial gets its own process for the sink's functions. Never more than
    ``at_once`` trials run at the same time; further ones wait for their turn. ``other_release`` says what helps a sink
    that needs another release of Spark, ``other_directory`` what helps where no run directory can be made.
    """

    def __init__(
        self,
        options: EnvironmentOptions,
        at_once: int | None = None,
        *,
        other_release: str = OTHER_RELEASE,
        other_directory: str = OTHER_DIRECTORY,
    ) -> None:
        self._other_release = other_release
        self._other_directory = other_directory
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
        """Run one trial and keep it in its run directory: there is none of one that is refused before it begins.

        A plan may name a batch that never comes, as benches do: :func:`.request.check_request` refuses that.
        """
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
        with (
            new_run_directory(self._options.runs, request.directory, self._other_directory) as directory,
            self._process(path, directory / LOGS) as process,
        ):
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
                    check_release(path, self.environment.versions()["spark"], self._other_release)
            self._checked.add((job, sink.path, workload))
