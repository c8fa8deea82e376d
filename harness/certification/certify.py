"""Certification: a fault-free reference trace, a traced replay, then the trials that cover the space of points."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..determinism import Determinism
from ..session import Request, Session
from ..sinks import find_sink
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
from .points import Space, SweepPoint
from .question import question_of
from .recoveries import recoveries, shows_a_recovery
from .repeats import determinism_of
from .results import Judged, PointResult, Store, unexplained
from .roles import MIDDLE, batch_roles
from .scope import scope_of
from .space import select, space_of
from .trace import Event, Line, lines_in
from .traced import REFERENCE, Trace, read_journal, traced
from .unswept import unswept
from .wanted import STANDARD, Wanted

SLOWDOWN = 1.7
"""A trial with a kill takes about so many times the reference trial's time: it starts a second driver."""

START = 0.4
"""What a further point of a packed run costs, in times of the reference trial."""


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
    wanted: Wanted = STANDARD,
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
    reference, trace = traced(session, replace(request, plan=""), directory, REFERENCE)
    request = replace(request, readable=reference.verdict != "inconclusive")
    determinism = determinism_of(session, request, directory, roles.values())
    question = question_of(session, request, directory, wanted, roles, trace)
    space = space_of(question)
    asked = select(space, wanted.points)
    state = _SweepState(
        request, directory, wanted, roles, reference, determinism, trace, space, asked, store, inputs, started
    )
    engine = Engine(session, request, directory, store, fail_fast=wanted.fail_fast, done=done)
    try:
        if not (wanted.fail_fast and reference.verdict == "fail") and _run(engine, state, asked.points, announce):
            more = tuple(recoveries(question, _struck(state)))
            state = replace(state, space=space.with_more(more), asked=asked.with_more(more), whole=True)
            if more:
                _run(engine, state, more, announce)
    finally:
        certificate = state.certificate()
        write_certificate(certificate, directory)
    return certificate


def _run(engine: Engine, state: _SweepState, points: Sequence[SweepPoint], announce: Callable[[Sweep], None]) -> bool:
    """Run what has no result yet; whether the sweep goes on."""
    wanted, store, reference = state.wanted, state.store, state.reference
    todo = packs([point for point in points if store.get(point.text) is None], wanted.pack)
    parallel = wanted.parallel or default_parallelism()
    sizes = [len(pack.points) for pack in todo]
    stored = len(state.asked.points) - sum(sizes)
    announce(Sweep(reference, state.asked, len(todo), stored, _expected(reference, sizes, parallel)))
    return engine.run(todo, parallel)


def _struck(state: _SweepState) -> Iterator[tuple[SweepPoint, Sequence[Event]]]:
    """The points whose trials reported every line, each with its trial's journal."""
    last: tuple[Path, Sequence[Event]] | None = None
    for point in state.asked.points:
        result = state.store.get(point.text)
        if result is None or not result.reached or not shows_a_recovery(point):
            continue
        place = result.place(state.directory)
        if last is None or last[0] != place:
            last = place, read_journal(place)
        yield point, last[1]


def default_parallelism() -> int:
    """How many trials this machine can run side by side: one more than it has cores, since a trial often waits, as far
    as its memory goes (3 GiB each)."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**30
    return max(1, min(len(os.sched_getaffinity(0)) + 1, memory // 3 - 1))


def _expected(reference: Judged, sizes: Sequence[int], parallel: int) -> float:
    trials = sum(SLOWDOWN + START * (size - 1) for size in sizes)
    return trials * reference.seconds / max(1, min(parallel, 2))


@dataclass(frozen=True)
class _SweepState:
    """All that a certificate is made of. ``whole``: the points include those that other points' trials have shown."""

    request: Request
    directory: Path
    wanted: Wanted
    roles: Mapping[str, int]
    reference: Judged
    determinism: Determinism | None
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
        scope = scope_of(self.space, self.asked, by_plan, self.roles, left_out, self.whole)
        trials = [self.reference, *results]
        outcome = outcome_of([trial.verdict for trial in trials], complete)
        document = self.trace.document
        return Certificate(
            verdict=outcome,
            summary=summary_of(outcome, document.claim, scope, results, self.determinism),
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
            ),
            scope=scope,
            anomalies=anomalies_of(trials),
            notes=notes_of(trials),
            reference=self.reference,
            determinism=self.determinism,
            points=results,
            seconds=round(time.monotonic() - self.started, 1),
            environment=document.environment.model_dump(),
            inputs=dict(self.inputs),
            run_directory=str(self.directory),
        )
