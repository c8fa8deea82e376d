"""Certification: a fault-free reference trace, a traced replay, then the trials that cover the space of points."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...assertions import JOURNAL
from ...faults import Fault, Plan, Point, format_plan, phases_of, required_steps
from ...faults.handlers import calls_at, errors_in, states_a_fact
from ..session import Request, Session, refusal
from ..sinks import find_sink, shape
from ..trial.document import TrialDocument
from ..trial.record import read_trial
from .certificate import (
    Certificate,
    Coverage,
    anomalies_of,
    guarantee_of,
    notes_of,
    outcome_of,
    summary_of,
    write_certificate,
)
from .engine import Engine
from .inputs import inputs_of
from .packing import packs
from .points import CRASH, KILL, STEPS_ONLY, Code, Profile, Question, Space, SweepPoint
from .recoveries import recoveries, shows_a_recovery
from .results import Judged, PointResult, Store, unexplained
from .roles import MIDDLE, batch_roles
from .scope import scope_of
from .space import names_code, select, space_of
from .trace import Event, Line, lines_in
from .unswept import unswept

REFERENCE = "000-reference"
REPLAY = "000-replay"

JUDGED = ("verdict", "exactly_once", "guarantee", "reason", "anomalies", "notes")
"""What a sweep keeps of a trial's document."""

SLOWDOWN = 1.7
"""A trial with a kill takes about so many times the reference trial's time: it starts a second driver."""

START = 0.4
"""What a further point of a packed run costs, in times of the reference trial."""


@dataclass(frozen=True)
class Wanted:
    """What to sweep, and how. ``batch`` None: all roles. ``pack``: points that may share a run. ``parallel`` None: what
    the machine bears."""

    profile: Profile = "standard"
    points: str = "all"
    batch: int | None = None
    pack: int = 8
    parallel: int | None = None
    fail_fast: bool = False


@dataclass(frozen=True)
class Sweep:
    """What is going to be run, known after the traces.

    ``expected`` is in seconds; so many ``stored`` results are there already.
    """

    reference: Judged
    space: Space
    runs: int
    stored: int
    expected: float


def certify(
    session: Session,
    request: Request,
    directory: Path,
    wanted: Wanted = Wanted(),
    *,
    announce: Callable[[Sweep], None] = lambda sweep: None,
    done: Callable[[PointResult], None] = lambda result: None,
) -> Certificate:
    """Sweep one sink; ``announce`` is called before the sweep starts and ``done`` with each result.

    ``directory`` holds each trial's run directory and the results; those that are there already are not run again.
    The certificate is written however the sweep ends, also by an interrupt. Raises what the reference trial raises:
    SinkError, UsageError, Unavailable.
    """
    started = time.monotonic()
    roles = batch_roles(request.workload, wanted.batch)
    inputs = inputs_of(session.options, request)
    directory.mkdir(parents=True, exist_ok=True)
    store = Store(directory, inputs)
    reference, trace = _traced(session, replace(request, plan=""), directory, REFERENCE)
    request = replace(request, readable=reference.verdict != "inconclusive")
    question = _question(session, request, directory, wanted, roles, trace)
    space = space_of(question)
    asked = select(space, wanted.points)
    sweeping = _Sweeping(request, directory, wanted, roles, reference, trace, space, asked, store, inputs, started)
    engine = Engine(session, request, directory, store, fail_fast=wanted.fail_fast, done=done)
    try:
        if not (wanted.fail_fast and reference.verdict == "fail") and _run(engine, sweeping, asked.points, announce):
            more = tuple(recoveries(question, _struck(sweeping)))
            sweeping = replace(sweeping, space=space.with_more(more), asked=asked.with_more(more), whole=True)
            if more:
                _run(engine, sweeping, more, announce)
    finally:
        certificate = sweeping.certificate()
        write_certificate(certificate, directory)
    return certificate


def _run(engine: Engine, sweeping: _Sweeping, points: Sequence[SweepPoint], announce: Callable[[Sweep], None]) -> bool:
    """Run what has no result yet; whether the sweep goes on."""
    wanted, store, reference = sweeping.wanted, sweeping.store, sweeping.reference
    todo = packs([point for point in points if store.get(point.text) is None], wanted.pack)
    parallel = wanted.parallel or bearable()
    sizes = [len(pack.points) for pack in todo]
    stored = len(sweeping.asked.points) - sum(sizes)
    announce(Sweep(reference, sweeping.asked, len(todo), stored, _expected(reference, sizes, parallel)))
    return engine.run(todo, parallel)


def _struck(sweeping: _Sweeping) -> Iterator[tuple[SweepPoint, Sequence[Event]]]:
    """The points whose trials reported every line, each with its trial's journal."""
    last: tuple[Path, Sequence[Event]] | None = None
    for point in sweeping.asked.points:
        result = sweeping.store.get(point.text)
        if result is None or not result.reached or not shows_a_recovery(point):
            continue
        place = sweeping.directory / Path(result.run_directory).name
        if last is None or last[0] != place:
            last = place, _read_journal(place)
        yield point, last[1]


@dataclass(frozen=True)
class Trace:
    """A trial's JSON document and its journal."""

    document: TrialDocument
    journal: Sequence[Event]


def bearable() -> int:
    """How many trials this machine bears side by side: one more than it has cores, since a trial often waits, as far as
    its memory goes (3 GiB each)."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**30
    return max(1, min(len(os.sched_getaffinity(0)) + 1, memory // 3 - 1))


def _traced(session: Session, request: Request, directory: Path, name: str) -> tuple[Judged, Trace]:
    """A trial with all probes, or the one that this sweep ran before it was resumed: its verdict and its journal."""
    place = directory / name
    trace = _stored_trace(place)
    if trace is None:
        if place.exists():  # cut short
            shutil.rmtree(place)
        session.trial(replace(request, trace=True, directory=place))
        trace = _read_trace(place)
    fields = {name: getattr(trace.document, name) for name in JUDGED}
    return Judged(**fields, seconds=trace.document.timings.total, run_directory=str(place)), trace


def _stored_trace(place: Path) -> Trace | None:
    """None if there is none, or what a power cut left of one."""
    try:
        return _read_trace(place)
    except (OSError, ValueError):
        return None


def _read_trace(place: Path) -> Trace:
    return Trace(read_trial(place), _read_journal(place))


def _read_journal(place: Path) -> Sequence[Event]:
    lines = (place / JOURNAL).read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def _question(
    session: Session, request: Request, directory: Path, wanted: Wanted, roles: Mapping[str, int], trace: Trace
) -> Question:
    sink = find_sink(request.sink)
    replay: Sequence[Event] = ()
    if wanted.profile not in STEPS_ONLY and names_code(wanted.points):
        crashes = [Fault(Point(CRASH.phase, CRASH.edge, {"batch": batch}), (KILL,)) for batch in roles.values()]
        plan = format_plan(Plan(tuple(crashes)))
        replay = _traced(session, replace(request, plan=plan), directory, REPLAY)[1].journal

    def caught(lines: Sequence[Line], facts: bool) -> list[str]:
        names = errors_in([(sink.parent / line.file, line.line) for line in lines], sink.parent)
        return [name for name in names if states_a_fact(name, sink.parent) is facts]

    return Question(
        trace=trace.journal,
        roles=roles,
        refusal=lambda plan: refusal(plan, sink, session.options),
        replay=replay,
        profile=wanted.profile,
        phases=frozenset(phase.name for phase, _ in phases_of(shape(sink))),
        required=required_steps(shape(sink)),
        code=Code(
            errors=lambda lines: caught(lines, False),
            facts=lambda lines: caught(lines, True),
            calls=lambda line: calls_at(sink.parent / line.file, line.line),
        ),
    )


def _expected(reference: Judged, sizes: Sequence[int], parallel: int) -> float:
    trials = sum(SLOWDOWN + START * (size - 1) for size in sizes)
    return trials * reference.seconds / max(1, min(parallel, 2))


@dataclass(frozen=True)
class _Sweeping:
    """All that a certificate is made of. ``whole``: the points include those that other points' trials have shown."""

    request: Request
    directory: Path
    wanted: Wanted
    roles: Mapping[str, int]
    reference: Judged
    trace: Trace
    space: Space
    asked: Space
    store: Store
    inputs: Mapping[str, str]
    started: float
    whole: bool = False

    def certificate(self) -> Certificate:
        found = [result for point in self.asked.points if (result := self.store.get(point.text)) is not None]
        results = [*found, *unexplained(self.store.of_runs(), found)]
        complete = self.whole and len(found) == len(self.asked.points) > 0 and not self.asked.unreached
        by_plan = {result.plan: result for result in found}
        swept = {point.at for point in self.asked.points if isinstance(point.at, Line)}
        left_out = unswept(find_sink(self.request.sink), lines_in(self.trace.journal) | swept)
        scope = scope_of(self.space, self.asked, by_plan, self.roles, left_out)
        trials = [self.reference, *results]
        outcome = outcome_of([trial.verdict for trial in trials], complete)
        document = self.trace.document
        return Certificate(
            verdict=outcome,
            summary=summary_of(outcome, document.claim, scope, results),
            guarantee=guarantee_of(outcome, trials),
            claim=document.claim,
            sink=document.sink,
            batch=self.roles[MIDDLE],
            seed=self.request.workload.seed,
            workload=document.workload,
            profile=self.wanted.profile,
            coverage=Coverage(
                points=len(self.asked.points),
                run=len(found),
                landed=sum(result.landed for result in found),
                whole=self.whole,
            ),
            scope=scope,
            anomalies=anomalies_of(trials),
            notes=notes_of(trials),
            reference=self.reference,
            points=results,
            seconds=round(time.monotonic() - self.started, 1),
            environment=document.environment.model_dump(),
            inputs=dict(self.inputs),
            run_directory=str(self.directory),
        )
