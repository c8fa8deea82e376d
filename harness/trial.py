"""One trial: arrange, act, settle, judge. docs/architecture.md draws its life."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg

from ..assertions import Evidence, FaultRecord, Reading, SourceError, judge, save, truth
from ..assertions.kafka import ObservationError
from ..assertions.source import write_workload
from ..faults import Fault, Point, format_fault
from . import checkpoint
from .act import Acted, act
from .environments.base import Environment, Unavailable
from .errors import SinkError
from .journal import Journal
from .settle import Settler
from .sinks import SinkProcess
from .site import Site, arrange
from .spec import TrialResult, TrialSpec
from .timings import stages


class Stopwatch:
    """Seconds by stage."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = self._clock()
        yield
        self.seconds[name] = round(self._clock() - start, 3)


def run_trial(spec: TrialSpec, environment: Environment, sink_process: SinkProcess, directory: Path) -> TrialResult:
    """Run a job once through its plan and judge it.

    ``directory`` is the run directory and exists; all that the judgement is made of is kept there.
    Raises SinkError for the sink's own error before any fault, Unavailable for the environment's.
    """
    start = time.monotonic()
    try:
        return _run(spec, environment, sink_process, directory, start)
    except (SourceError, ObservationError, psycopg.Error) as error:
        parts = "".join(f"{failure.part} {failure.detail}: " for failure in environment.failures(start))
        raise Unavailable(f"{parts}{_line(error)}; see {directory / 'logs'}") from error


def _run(
    spec: TrialSpec, environment: Environment, sink_process: SinkProcess, directory: Path, start: float
) -> TrialResult:
    watch = Stopwatch()
    with ExitStack() as stack:
        journal = stack.enter_context(Journal(directory / "journal.jsonl"))
        stack.callback(environment.collect_logs, directory / "logs")
        with watch.stage("arrange"):
            site = arrange(spec.sink, spec.workload.partitions, environment, stack)
            unreadable = _prepare(spec, site, sink_process)
            writing = stack.enter_context(ThreadPoolExecutor(1)).submit(
                write_workload, site.kafka, site.source, spec.workload
            )
        with watch.stage("act"):
            acted = act(spec, environment, site, journal, directory, writing)
            acks = writing.result()
        failures = [f"{one.part} {one.detail}" for one in environment.failures(start)]
        _raise_own_error(spec, acted, failures, directory)
        broken = acted.broken + failures
        settler = Settler(spec, environment, site, sink_process, journal, broken)
        with watch.stage("settle"):
            settlement = settler.settle(acted.outcome.finished)
            readings = settler.read()
        _raise_own_read_error(acted, unreadable, readings)
        with watch.stage("judge"):
            checkpoint.copy(site.checkpoint, directory / "checkpoint")
            evidence = Evidence(
                claim=spec.claim,
                truth=truth(spec.workload),
                acks=acks,
                batches=checkpoint.batches(site.checkpoint),
                journal=journal.events(),
                readings=readings,
                settlement=settlement,
                faults=[fault_record(fault) for fault in spec.plan.faults],
                stuck=acted.outcome.error,
            )
            save(evidence, directory)
            verdict = judge(evidence)
        if "cleanup" in spec.sink.functions:
            sink_process.call("cleanup", site.targets["harness"])
        events = journal.events()
    return TrialResult(spec, verdict, stages(watch.seconds, events), environment.versions(), directory, events)


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def fault_record(fault: Fault) -> FaultRecord:
    """A fault as the judge needs it."""
    at = fault.at
    phase, edge = (at.phase, at.edge) if isinstance(at, Point) else ("at", None)
    return FaultRecord(format_fault(fault), phase, edge, [(action.name, action.target) for action in fault.actions])


def _prepare(spec: TrialSpec, site: Site, sink_process: SinkProcess) -> str | None:
    """Call the sink's prepare and see that the target is empty; returns why it could not be read yet, if so."""
    target = site.targets["harness"]
    if "prepare" in spec.sink.functions:
        sink_process.call("prepare", target)
    if "read" not in spec.sink.functions:
        return None
    try:
        rows = sink_process.read(target)
    except SinkError as error:
        return str(error)
    if rows:
        raise SinkError(
            f"sink {spec.sink.path.name}: read(target) returns {len(rows)} rows before the job has started: "
            "use target.name, target.topic or target.directory, so that each trial begins with an empty target"
        )
    return None


def _raise_own_error(spec: TrialSpec, acted: Acted, failures: Sequence[str], directory: Path) -> None:
    """A job that never gets past a batch before any fault fired fails by itself, or by a failed part of the
    environment: that is no verdict."""
    outcome = acted.outcome
    if outcome.finished or acted.fired:
        return
    if failures:
        raise Unavailable(f"{'; '.join(failures)}; see {directory / 'logs'}")
    where = "before its first batch" if outcome.batch is None else f"in batch {outcome.batch}"
    what = (
        f"hangs {where}: {outcome.error} (--deadline)" if outcome.hung else f"fails {where} by itself: {outcome.error}"
    )
    raise SinkError(f"sink {spec.sink.path.name} {what}; no fault had fired; see {directory / 'logs'}")


def _raise_own_read_error(acted: Acted, unreadable: str | None, readings: Sequence[Reading]) -> None:
    """A read that fails without a fault, or failed in the same way before the job began, is the sink's own error."""
    for reading in readings:
        if reading.error and (not acted.fired or reading.error == unreadable):
            raise SinkError(reading.error)
