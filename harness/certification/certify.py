"""Certification: a fault-free reference trace, a traced replay, then the trials that cover the space of points."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ...faults.modules import from_elsewhere
from ..determinism import Determinism
from ..errors import Unavailable, UsageError
from ..request import Request
from ..session import Session
from ..sinks import find_sink
from ..triggers import check_sweep
from .beside import Beside
from .certificate import (
    Certificate,
    Coverage,
    anomalies_of,
    guarantee_of,
    notes_of,
    outcome_of,
    stored_certificate,
    summary_of,
    write_certificate,
)
from .chance import Traces, left_to_chance
from .engine import Engine
from .failing_anyway import without_what_fails_anyway
from .idle import idle
from .inputs import inputs_of
from .left_behind import Behind, noting_left_behind
from .one_place import NOTE, is_cleaned, is_one, may_be_one
from .packing import Pack, of_each_kind, packs
from .points import EMPTY, Question, Space, SweepPoint
from .question import question_of, replay_of, replays
from .recoveries import recoveries, shows_a_recovery
from .refusals import is_refused, refused_again
from .repeats import determinism_of, looks_into
from .results import Judged, PointResult, Store, says_more, unexplained
from .retries import Retried, noting_retries, retries
from .roles import MIDDLE, batch_roles
from .scope import scope_of
from .shared_ids import note_of, of_no_query, shared
from .some_batches import in_a_large_batch, in_some_batches
from .space import chosen, is_effect, select, space_of
from .starts import Crash, Struck, later_starts, lines_of_starts, noting_crashes
from .strikes.larger import BATCH, LARGE, LARGE_RUN, tried_without_a_fault
from .strikes.longer import LONG_RUN
from .trace import Event, Line, Step, lines_in
from .traced import REFERENCE, Trace, judged_replay, read_journal, traced
from .unswept import unswept
from .wanted import STANDARD, Wanted

SLOWDOWN = 1.7
"""A trial with a kill takes about so many times the reference trial's time: it starts a second driver."""

START = 0.4
"""What a further point of a packed run costs, in times of the reference trial."""


Replay = Sequence[Event]
"""The journal of a traced replay; empty where none is asked for."""


@dataclass(frozen=True)
class Sweep:
    """A part of the points that is going to be run.

    ``expected`` is in seconds; so many ``stored`` results are there already.
    """

    reference: Judged
    points: int
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
    Nothing is struck in a sink that fails without a fault: each point would fail. The certificate is written however
    the sweep ends, also by an interrupt. Raises what the reference trial raises: SinkError, UsageError, Unavailable.
    """
    check_sweep(request.trigger)
    started = time.monotonic() - seconds_before(directory)
    roles = batch_roles(request.workload, wanted.batch)
    inputs = inputs_of(session.options, request)
    directory.mkdir(parents=True, exist_ok=True)
    store = Store(directory, inputs)
    reference, trace = traced(session, replace(request, plan=""), directory, REFERENCE)
    request = replace(request, readable=reference.verdict != "inconclusive")
    engine = Engine(session, request, directory, store, fail_fast=wanted.fail_fast, done=done)
    state = _SweepState(request, directory, wanted, roles, reference, trace, store, inputs, started)
    sweeping = _Sweeping(session, engine, state, announce)
    try:
        if reference.verdict == "fail":
            sweeping.look_at_the_job()
        else:
            sweeping.run()
    finally:
        certificate = sweeping.state.certificate()
        write_certificate(certificate, directory)
    return certificate


def seconds_before(directory: Path) -> float:
    """What a sweep that is resumed has taken so far."""
    with suppress(UsageError):  # a damaged certificate is written anew
        stored = stored_certificate(directory)
        return stored.seconds if stored else 0.0
    return 0.0


class _Sweeping:
    """A sweep under way. ``state`` is what its certificate is made of, whenever it ends."""

    def __init__(self, session: Session, engine: Engine, state: _SweepState, announce: Callable[[Sweep], None]) -> None:
        self._session = session
        self._engine = engine
        self._announce = announce
        journal = state.trace.journal
        self._lanes = 1 if of_no_query(journal) or may_be_one(journal) else self._side_by_side(state)
        space = space_of(self._question(state, ()))
        self.state = replace(state, space=space, asked=chosen(space, state.wanted.points))

    def run(self) -> None:
        """The steps of the protocol, while a replay is traced; then all points that the two traces have shown; then
        those that only the trials of these have shown."""
        goes_on, determinism, replay = self._prepared()
        self.state = replace(self.state, determinism=determinism)
        if replay is None:
            return
        ids = shared(self.state.trace.journal, replay)
        one_place = is_one(self.state.trace.journal, replay)
        if replay and not ids and not one_place and not is_cleaned(replay):
            self._lanes = self._side_by_side(self.state)
        question = self._question(self.state, replay)
        space = space_of(question)
        asked = with_struck(select(space, self.state.wanted.points), self.state.asked, self.state.store)
        self.state = replace(self.state, space=space, asked=asked, replay=replay, shared_ids=ids, one_place=one_place)
        if goes_on and self._run(self.state.asked.points, self._lanes):
            self._without_what_is_too_large()
            crashes: list[Crash] = []
            retried: Retried = {}
            behind = Behind()
            struck = noting_retries(noting_crashes(_struck(self.state, shows_a_recovery), crashes), retried)
            struck = noting_left_behind(question, struck, behind)
            found = [*recoveries(question, struck), *later_starts(question, crashes), *retries(question, retried)]
            found += behind.points()
            found += refused_again(question, _struck(self.state, is_refused))
            long_run, large_run = map(self._journal_of, (LONG_RUN, LARGE_RUN))
            once = EMPTY.with_more([*in_some_batches(question, long_run), *in_a_large_batch(question, large_run)])
            space = self.state.space.with_more([*found, *once.points, *once.impossible])
            if long_run:
                select(space, self.state.wanted.points, whole=True)
            once = chosen(once, self.state.wanted.points)
            asked = self.state.asked.with_more([*found, *once.points, *once.impossible])
            self.state = replace(self.state, space=space, asked=asked, whole=True)
            if more := [point for point in asked.points if self.state.store.get(point.text) is None]:
                self._run(more, self._lanes)

    def look_at_the_job(self) -> None:
        """Whether it gives the same rows again: if not, a failure may be the job's fault."""
        self.state = replace(self.state, determinism=self._determinism())

    def _journal_of(self, run: SweepPoint) -> Sequence[Event]:
        """That of a run without a fault; nothing is struck in one that goes wrong by itself."""
        result = self.state.store.get(run.text)
        return read_journal(result.place(self.state.directory)) if result and result.verdict == "pass" else ()

    @staticmethod
    def _side_by_side(state: _SweepState) -> int:
        return state.wanted.parallel or default_parallelism()

    def _without_what_is_too_large(self) -> None:
        result = self.state.store.get(LARGE_RUN.text)
        space, asked = (tried_without_a_fault(one, result) for one in (self.state.space, self.state.asked))
        self.state = replace(self.state, space=space, asked=asked)

    def _question(self, state: _SweepState, replay: Sequence[Event]) -> Question:
        return question_of(self._session.options, state.request, state.wanted, state.roles, state.trace, replay)

    def _prepared(self) -> tuple[bool, Determinism | None, Replay | None]:
        """Whether the sweep goes on, and what its points are computed from: no replay if it ended before there was one.

        Where one failed point is enough, a step of each kind comes first.
        """
        wanted, request = self.state.wanted, self.state.request
        if not replays(wanted) and not looks_into(request):
            return True, None, ()
        if wanted.fail_fast:
            goes_on = self._run(self._steps(), self._lanes, of_each_kind_only=True)
            return goes_on, self._determinism(), self._replay() if goes_on else None
        if self._lanes == 1:
            return True, self._determinism(), self._replay()
        beside = Beside(lambda: (self._determinism(), self._replay()))
        goes_on = self._run(self._steps(), self._lanes - 1)
        try:
            return goes_on, *beside.result()
        except Unavailable:
            if goes_on:
                raise
            return False, None, None

    def _determinism(self) -> Determinism | None:
        state = self.state
        return determinism_of(self._session, state.request, state.directory, state.roles.values())

    def _replay(self) -> Replay:
        state = self.state
        return replay_of(self._session, state.request, state.directory, state.roles) if replays(state.wanted) else ()

    def _steps(self) -> list[SweepPoint]:
        """What the reference trace alone says for sure: which effects are steady is seen in the replay."""
        found = [point for point in self.state.asked.points if isinstance(point.at, Step) and not point.exclusive]
        return [point for point in found if not is_effect(point)]

    def _run(self, points: Sequence[SweepPoint], lanes: int, of_each_kind_only: bool = False) -> bool:
        """Run what has no result yet; whether the sweep goes on."""
        state = self.state
        rounds = self._rounds(points, of_each_kind_only)
        sizes = [len(pack.points) for some in rounds for pack in some]
        expected = _expected(state.reference, sizes, lanes)
        self._announce(Sweep(state.reference, len(state.asked.points), len(sizes), len(self._stored()), expected))
        return all(self._engine.run(some, lanes) for some in rounds)

    def _rounds(self, points: Sequence[SweepPoint], of_each_kind_only: bool) -> list[list[Pack]]:
        """Of what has no result yet. Where one failed point is enough, a point of each kind comes before more of it."""
        wanted, store = self.state.wanted, self.state.store
        todo = packs([point for point in points if store.get(point.text) is None], wanted.pack)
        if not wanted.fail_fast:
            return [todo]
        first, others = of_each_kind(todo, self._stored())
        return [first] if of_each_kind_only else [first, others]

    def _stored(self) -> list[SweepPoint]:
        return [point for point in self.state.asked.points if self.state.store.get(point.text) is not None]


def with_struck(asked: Space, before: Space, store: Store) -> Space:
    """What is asked now, and what was asked before and has a result: a failure stays one, whatever the replay shows."""
    known = {point.text for point in asked.points}
    return asked.with_more(
        tuple(point for point in before.points if point.text not in known and store.get(point.text) is not None)
    )


def but_for_those_that_others_stand_for(space: Space, store: Store) -> Space:
    """Of points that lead to the same, those that were not reached are left out where another one was."""
    results = {point.text: store.get(point.text) for point in space.points}
    reached = {point.way for point in space.points if point.way and _was_reached(results[point.text])}
    kept = [
        point
        for point in space.points
        if point.way not in reached or results[point.text] is None or _was_reached(results[point.text])
    ]
    return replace(space, points=tuple(kept))


def _was_reached(result: PointResult | None) -> bool:
    return result is not None and result.reached


def _struck(state: _SweepState, which: Callable[[SweepPoint], bool]) -> Iterator[Struck]:
    """Points that were reached, each with its trial's journal."""
    last: tuple[Path, Sequence[Event]] | None = None
    for point in state.asked.points:
        result = state.store.get(point.text)
        if result is None or not result.reached or not which(point):
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
    """All that a certificate is made of. ``replay``: once it is traced. ``whole``: the points include those that other
    points' trials have shown."""

    request: Request
    directory: Path
    wanted: Wanted
    roles: Mapping[str, int]
    reference: Judged
    trace: Trace
    store: Store
    inputs: Mapping[str, str]
    started: float
    determinism: Determinism | None = None
    space: Space = EMPTY
    asked: Space = EMPTY
    replay: Replay = ()
    shared_ids: Sequence[str] = ()
    one_place: bool = False
    whole: bool = False

    def certificate(self) -> Certificate:
        space, asked = map(self._but_for_what_cannot_be, (self.space, self.asked))
        found = [result for point in asked.points if (result := self.store.get(point.text)) is not None]
        by_plan = {result.plan: result for result in found}
        results = [*found, *(one for one in self.store.failed() if one.plan not in by_plan)]
        results += unexplained(self.store.of_runs(), results)
        replayed = judged_replay(self.directory)
        results += [replayed] if replayed and says_more(replayed, [self.reference, *results]) else []
        complete = self.whole and len(found) == len(asked.points) > 0 and asked.whole
        swept = {point.at for point in asked.points if isinstance(point.at, Line)}
        ran = lines_in(self.trace.journal) | lines_of_starts(self.trace.journal)
        sink = find_sink(self.request.sink)
        scope = scope_of(
            space, asked, by_plan, self.roles, unswept(sink, ran | swept), from_elsewhere(sink), self.whole
        )
        trials = [self.reference, *results]
        outcome = outcome_of([trial.verdict for trial in trials], complete)
        document = self.trace.document
        return Certificate(
            verdict=outcome,
            summary=summary_of(outcome, document.claim, scope, self.reference, results, self.determinism),
            guarantee=guarantee_of(outcome, trials),
            claim=document.claim,
            sink=document.sink,
            batch=self.roles[MIDDLE],
            seed=self.request.workload.seed,
            workload=document.workload,
            profile=self.wanted.profile,
            coverage=Coverage(
                points=len(asked.points),
                run=len(found),
                landed=sum(result.landed for result in found),
            ),
            scope=scope,
            anomalies=anomalies_of(trials),
            notes=[*note_of(self.shared_ids), *([NOTE] if self.one_place else []), *self._idle(), *notes_of(trials)],
            reference=self.reference,
            determinism=self.determinism,
            points=results,
            seconds=round(time.monotonic() - self.started, 1),
            environment=document.environment.model_dump(),
            inputs=dict(self.inputs),
            run_directory=str(self.directory),
        )

    def _idle(self) -> list[str]:
        found = idle(self.directory / REFERENCE, self.roles)
        large = self.store.get(LARGE_RUN.text)
        return found + (idle(large.place(self.directory), {LARGE: BATCH}) if large else [])

    def _but_for_what_cannot_be(self, space: Space) -> Space:
        """Without the points for which others stand, that depend on time, or whose statement fails by itself."""

        def journal(result: PointResult) -> Sequence[Event]:
            return read_journal(result.place(self.directory))

        traces = Traces(self.trace.journal, self.replay, [*self.roles.values()])
        space = but_for_those_that_others_stand_for(space, self.store)
        space = left_to_chance(space, self.store, traces, journal)
        return without_what_fails_anyway(space, self.store, journal)
