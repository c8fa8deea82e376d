"""One trial: arrange, act, settle, judge. docs/architecture.md draws its life."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...assertions import (
    JOURNAL,
    Evidence,
    ExpectationError,
    FaultRecord,
    Reading,
    Settlement,
    Verdict,
    input_table,
    job_input,
    judge,
    save,
    truth,
)
from ...faults import Rendezvous
from ...faults.settings import settings_of
from ..environments.base import Environment, Unavailable
from ..errors import ObservationError, SinkError, UsageError, one_line
from ..kafka_settings import set_brokers
from ..proxies.services import Proxies, proxies_for
from ..runtime.ports import LOOPBACK
from ..sink_declarations import not_asked_for
from ..sink_process import SinkProcess
from . import checkpoint
from .act import Acted, act
from .arrange import Resources, arrange
from .driver_log import NoJvm
from .fault_records import fault_records
from .journal import Journal
from .processed import Batches, Processed
from .settle import Settler
from .source import SourceError, write_workload
from .spec import TrialResult, TrialSpec
from .timings import stages

KEPT = "target"
"""The folder of a run directory with what was in target.directory at the end."""


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


def run_trial(
    spec: TrialSpec, environment: Environment, sink_process: SinkProcess, directory: Path, rendezvous: Rendezvous
) -> TrialResult:
    """Run a job once through its plan and judge it.

    ``directory`` is the run directory and exists; all that the judgement is made of is kept there. ``rendezvous`` is
    the environment's, which probes report to.
    Raises SinkError for the sink's own error before any fault, Unavailable for the environment's.
    """
    start = time.monotonic()
    try:
        return _run(spec, environment, sink_process, directory, rendezvous, start)
    except (SourceError, ObservationError) as error:
        parts = "".join(f"{failure.part} {failure.detail}: " for failure in environment.failures(start))
        raise Unavailable(f"{parts}{one_line(error)}; see {directory / 'logs'}") from error
    except ExpectationError as error:
        raise UsageError(f"{spec.job.expectation_path}: {error}") from error


def _run(
    spec: TrialSpec,
    environment: Environment,
    sink_process: SinkProcess,
    directory: Path,
    rendezvous: Rendezvous,
    start: float,
) -> TrialResult:
    faults = fault_records(spec.plan, spec.resolved.shape.execution)
    with ExitStack() as stack:
        journal = stack.enter_context(Journal(directory / JOURNAL))
        trial = _Trial(spec, environment, sink_process, directory, rendezvous, start, journal, stack)
        evidence, verdict = trial.run(faults)
        events = journal.events()
    timings, versions = stages(trial.watch.seconds, events), environment.versions()
    return TrialResult(spec, verdict, timings, versions, directory, events, evidence, trial.warnings)


@dataclass(frozen=True)
class _Arranged:
    """``unreadable``: why the target could not be read before the job, if so; ``writing`` gives the acknowledgements of
    the workload, which is being written."""

    resources: Resources
    proxies: Proxies
    unreadable: str | None
    writing: Future[pa.Table]


@dataclass(frozen=True)
class _Settled:
    """``broken`` are the parts of the environment that failed by themselves."""

    settler: Settler
    settlement: Settlement
    readings: Sequence[Reading]
    broken: Sequence[str]


@dataclass(frozen=True)
class _Trial:
    """A trial under way, stage by stage. ``stack`` ends what the stages began; ``start`` is of the monotonic clock."""

    spec: TrialSpec
    environment: Environment
    sink_process: SinkProcess
    directory: Path
    rendezvous: Rendezvous
    start: float
    journal: Journal
    stack: ExitStack
    watch: Stopwatch = field(default_factory=Stopwatch)
    warnings: list[str] = field(default_factory=list)

    def run(self, faults: Sequence[FaultRecord]) -> tuple[Evidence, Verdict]:
        logs = self.directory / "logs"
        self._at_end("the services' logs were not collected", self.environment.collect_logs, logs)
        arranged = self._arrange()
        processed = self._processed(arranged)
        settler = Settler(self.spec, self.environment, arranged.resources, self.sink_process, self.journal, processed)
        acted, acks = self._act(arranged, processed, settler)
        settled = self._settle(acted, settler)
        unreadable = None if self.spec.readable else arranged.unreadable
        _raise_if_cut(arranged.resources.checkpoint)
        _raise_own_read_error(acted, unreadable, settled.readings, settled.broken, self.directory)
        evidence, verdict = self._judge(arranged.resources, acks, processed.batches(), acted, settled, faults)
        if "cleanup" in self.spec.sink.functions:
            target = arranged.resources.namespace("harness")
            _warned(self.warnings, "the sink's cleanup failed", self.sink_process.call, "cleanup", target)
        return evidence, verdict

    def _look_for_rows_of_others(self, resources: Resources) -> None:
        """What another trial may have left in a system of the user's own, which ``prepare`` may be about to remove. Its
        process has met a table that is not there, or has one open: it is ended before ``prepare``."""
        if _is_of_its_own(self.spec) or "read" not in self.spec.sink.functions:
            return
        rows = 0
        with suppress(SinkError):  # what prepare makes is not there yet
            rows = len(self.sink_process.read(resources.namespace("harness"), LOOK))
        self.sink_process.close()
        self.journal.record("target.found", {"rows": rows, "cleaned": "cleanup" in self.spec.sink.functions})

    def _arrange(self) -> _Arranged:
        spec = self.spec
        with self.watch.stage("arrange"):
            proxied = spec.resolved.proxied & {*spec.sink.services, *spec.own_services}
            if self.environment.own_host() != LOOPBACK:  # which would be the job's own machine there
                proxied |= spec.own_services.keys()
            proxies = self.stack.enter_context(proxies_for(proxied, self.environment, spec.own_services))
            resources = arrange(
                spec.sink,
                spec.job,
                spec.workload.partitions,
                self.environment,
                proxies,
                spec.own_services,
                settings_of(spec.plan.settings).copies,
            )
            self._at_end("the trial's source topic was not removed", resources.drop_source)
            for kind in resources.targets.kinds:
                self._at_end(f"the trial's {kind} was not removed", resources.targets.drop, kind)
            if spec.keep:
                source = resources.namespace("harness")["directory"]
                self._at_end("the target's files were not kept", shutil.copytree, source, self.directory / KEPT)
            self._set_brokers(resources.kafka)
            self._look_for_rows_of_others(resources)
            unreadable = _prepare(spec, resources, self.sink_process)
            pool = self.stack.enter_context(ThreadPoolExecutor(1))
            writing = pool.submit(write_workload, resources.kafka, resources.source, spec.workload)
        return _Arranged(resources, proxies, unreadable, writing)

    def _set_brokers(self, bootstrap: str) -> None:
        """As the plan has them, until the trial's end."""
        wanted = settings_of(self.spec.plan.settings).broker
        if wanted:
            back = set_brokers(bootstrap, wanted)
            self._at_end("the brokers' properties were not set back", back)
            self.journal.record("brokers.set", {"properties": dict(wanted)})

    def _processed(self, arranged: _Arranged) -> Processed:
        execution = self.spec.resolved.shape.execution
        return Processed(arranged.resources, self.journal, execution, self.spec.workload, arranged.writing.result)

    def _act(self, arranged: _Arranged, processed: Processed, settler: Settler) -> tuple[Acted, pa.Table]:
        spec, watching = self.spec, settler if self._watched else None
        with self.watch.stage("act"):
            resources, writing = arranged.resources, arranged.writing
            acted = act(
                spec,
                self.environment,
                self.sink_process,
                resources,
                arranged.proxies,
                self.journal,
                self.directory,
                writing,
                self.rendezvous,
                processed,
                watching,
            )
            acks = writing.result()
        _raise_own_error(spec, acted, self._failures(), resources.namespace("job"), self.directory)
        return acted, acks

    @property
    def _watched(self) -> bool:
        """What a reader in between may see is known only where each run has the same batches."""
        return self.spec.watch and self.spec.resolved.shape.execution == "micro-batch"

    def _settle(self, acted: Acted, settler: Settler) -> _Settled:
        settler = replace(settler, broken=acted.broken + self._failures())
        with self.watch.stage("settle"):
            settlement = settler.settle(acted.outcome.finished)
            readings = settler.read()
        return _Settled(settler, settlement, readings, acted.broken + self._failures())

    def _judge(
        self,
        resources: Resources,
        acks: pa.Table,
        batches: Batches,
        acted: Acted,
        settled: _Settled,
        faults: Sequence[FaultRecord],
    ) -> tuple[Evidence, Verdict]:
        spec = self.spec
        with self.watch.stage("judge"):
            checkpoint.copy(resources.checkpoint, self.directory / "checkpoint")
            watermarks = checkpoint.watermarks(resources.checkpoint)
            expectation = spec.job.expectation(spec.sink)
            given = job_input(input_table(spec.workload, acks, batches), watermarks)
            evidence = Evidence(
                claim=spec.claim,
                workload=spec.workload,
                expectation=expectation,
                given=given,
                truth=truth(expectation, given),
                acks=acks,
                batches=batches,
                watermarks=watermarks,
                journal=self.journal.events(),
                readings=settled.readings,
                settlement=settled.settlement,
                faults=faults,
                stuck=acted.outcome.error,
                glimpses=acted.glimpses,
                atomic=spec.sink.atomic,
                readable=spec.readable,
                broken=settled.broken,
                raw=_raw(settled.settler, self.warnings),
            )
            save(evidence, self.directory)
            return evidence, judge(evidence)

    def _at_end(self, what: str, call: Callable[..., None], *arguments: Any) -> None:
        self.stack.callback(_warned, self.warnings, what, call, *arguments)

    def _failures(self) -> list[str]:
        """Parts of the environment that failed by themselves since the trial's start, one line each."""
        return [f"{one.part} {one.detail}" for one in self.environment.failures(self.start)]


def _warned(warnings: list[str], what: str, call: Callable[..., None], *arguments: Any) -> None:
    """Call something that comes after the verdict: a failure of it is reported with the verdict, not in its place."""
    try:
        call(*arguments)
    except Exception as error:
        warnings.append(f"{what}: {one_line(error)}")


def _raw(settler: Settler, warnings: list[str]) -> dict[str, int]:
    try:
        return settler.raw()
    except ObservationError as error:
        warnings.append(f"the rows that lie in the target were not counted: {one_line(error)}")
        return {}


LOOK = 10.0
"""Seconds for a look at what another trial may have left: a reader may wait for what ``prepare`` makes."""


def _is_of_its_own(spec: TrialSpec) -> bool:
    """Whether all that the sink writes to is made for the trial; else two trials may write to the same place."""
    return bool(spec.sink.services) and not spec.own_services


def _prepare(spec: TrialSpec, resources: Resources, sink_process: SinkProcess) -> str | None:
    """Call the sink's prepare and see that the target is empty; returns why it could not be read yet, if so."""
    target = resources.namespace("harness")
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


def _raise_own_error(
    spec: TrialSpec, acted: Acted, failures: Sequence[str], target: Mapping[str, Any], directory: Path
) -> None:
    """A job that never gets past a batch before any fault fired fails by itself, or by a failed part of the
    environment: that is no verdict. A driver whose JVM does not start has not come to the sink yet."""
    outcome = acted.outcome
    if outcome.finished or acted.fired:
        return
    if failures:
        raise Unavailable(f"{'; '.join(failures)}; see {directory / 'logs'}")
    if isinstance(outcome.error, NoJvm):
        raise UsageError(f"{outcome.error}: look at the properties of Spark (--conf, CONF); see {directory / 'logs'}")
    where = "before its first batch" if outcome.batch is None else f"in batch {outcome.batch}"
    what = (
        f"hangs {where}: {outcome.error} (--deadline)" if outcome.hung else f"fails {where} by itself: {outcome.error}"
    )
    mend = not_asked_for(spec.sink.path, target)
    raise SinkError(f"sink {spec.sink.path.name} {what}{mend}; no fault had fired; see {directory / 'logs'}")


def _raise_if_cut(directory: Path) -> None:
    """What a job was given in batches that Spark has removed from the offset log is not known any more."""
    left = checkpoint.planned(directory)
    if left and left[0] > 0:
        raise UsageError(
            f"the offset log begins with batch {left[0]}: Spark has removed those before it, of which the ground truth "
            "is computed, too. Leave spark.sql.streaming.minBatchesToRetain as onceproof sets it, or set it higher"
        )


def _raise_own_read_error(
    acted: Acted, unreadable: str | None, readings: Sequence[Reading], broken: Sequence[str], directory: Path
) -> None:
    """A read that fails without a fault, or failed in the same way before the job began and ever since, is the sink's
    own error, or that of a part of the environment that failed by itself: that is no verdict."""
    was_read = any(glimpse.rows is not None and glimpse.rows.num_rows for glimpse in acted.glimpses)
    for reading in readings:
        if reading.error and not acted.fired and broken:
            raise Unavailable(f"{'; '.join(broken)}: {reading.error}; see {directory / 'logs'}")
        if reading.error and (not acted.fired or (reading.error == unreadable and not was_read)):
            raise SinkError(reading.error)
