"""One trial: arrange, act, settle, judge. docs/architecture.md draws its life."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg

from ...assertions import Evidence, Reading, SourceError, input_table, judge, save, truth
from ...assertions.kafka import ObservationError
from ...assertions.source import write_workload
from ..environments.base import Environment, Unavailable
from ..errors import SinkError
from ..sinks import SinkProcess
from . import checkpoint
from .act import Acted, act
from .arrange import Resources, arrange, remove
from .fault_records import fault_records
from .journal import Journal
from .settle import Settler, one_line
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
        raise Unavailable(f"{parts}{one_line(error)}; see {directory / 'logs'}") from error


def _run(
    spec: TrialSpec, environment: Environment, sink_process: SinkProcess, directory: Path, start: float
) -> TrialResult:
    watch, warnings, faults = Stopwatch(), list[str](), fault_records(spec.plan)
    with ExitStack() as stack:
        journal = stack.enter_context(Journal(directory / "journal.jsonl"))
        stack.callback(
            _warned, warnings, "the services' logs were not collected", environment.collect_logs, directory / "logs"
        )
        with watch.stage("arrange"):
            resources = arrange(spec.sink, spec.workload.partitions, environment)
            stack.callback(_warned, warnings, "the trial's database was not removed", remove, resources)
            unreadable = _prepare(spec, resources, sink_process)
            writing = stack.enter_context(ThreadPoolExecutor(1)).submit(
                write_workload, resources.kafka, resources.source, spec.workload
            )
        with watch.stage("act"):
            settler = Settler(spec, environment, resources, sink_process, journal)
            acted = act(spec, environment, resources, journal, directory, writing, settler if spec.watch else None)
            acks = writing.result()
        _raise_own_error(spec, acted, _failures(environment, start), directory)
        settler = replace(settler, broken=acted.broken + _failures(environment, start))
        with watch.stage("settle"):
            settlement = settler.settle(acted.outcome.finished)
            readings = settler.read()
        broken = acted.broken + _failures(environment, start)
        _raise_own_read_error(acted, unreadable, readings, broken, directory)
        with watch.stage("judge"):
            checkpoint.copy(resources.checkpoint, directory / "checkpoint")
            batches = checkpoint.batches(resources.checkpoint)
            expectation, stored = spec.job.expectation(spec.sink), input_table(spec.workload, acks, batches)
            evidence = Evidence(
                claim=spec.claim,
                workload=spec.workload,
                expectation=expectation,
                input=stored,
                truth=truth(expectation, stored),
                acks=acks,
                batches=batches,
                journal=journal.events(),
                readings=readings,
                settlement=settlement,
                faults=faults,
                stuck=acted.outcome.error,
                glimpses=acted.glimpses,
                atomic=spec.sink.atomic,
                readable=spec.readable,
                broken=broken,
                raw=_raw(settler, warnings),
            )
            save(evidence, directory)
            verdict = judge(evidence)
        if "cleanup" in spec.sink.functions:
            target = resources.targets["harness"]
            _warned(warnings, "the sink's cleanup failed", sink_process.call, "cleanup", target)
        events = journal.events()
    timings, versions = stages(watch.seconds, events), environment.versions()
    return TrialResult(spec, verdict, timings, versions, directory, events, evidence, warnings)


def _warned(warnings: list[str], what: str, call: Callable[..., None], *arguments: Any) -> None:
    """Call something that comes after the verdict: a failure of it is reported with the verdict, not in its place."""
    try:
        call(*arguments)
    except Exception as error:
        warnings.append(f"{what}: {one_line(error)}")


def _failures(environment: Environment, start: float) -> list[str]:
    return [f"{one.part} {one.detail}" for one in environment.failures(start)]


def _raw(settler: Settler, warnings: list[str]) -> dict[str, int]:
    try:
        return settler.raw()
    except (ObservationError, psycopg.Error) as error:
        warnings.append(f"the rows that lie in the target were not counted: {one_line(error)}")
        return {}


def _prepare(spec: TrialSpec, resources: Resources, sink_process: SinkProcess) -> str | None:
    """Call the sink's prepare and see that the target is empty; returns why it could not be read yet, if so."""
    target = resources.targets["harness"]
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


def _raise_own_read_error(
    acted: Acted, unreadable: str | None, readings: Sequence[Reading], broken: Sequence[str], directory: Path
) -> None:
    """A read that fails without a fault, or failed in the same way before the job began, is the sink's own error, or
    that of a part of the environment that failed by itself: that is no verdict."""
    for reading in readings:
        if reading.error and not acted.fired and broken:
            raise Unavailable(f"{'; '.join(broken)}: {reading.error}; see {directory / 'logs'}")
        if reading.error and (not acted.fired or reading.error == unreadable):
            raise SinkError(reading.error)
