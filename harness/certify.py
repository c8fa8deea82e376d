"""Certification: a fault-free reference trace, then one trial for each point of it."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..assertions import Guarantee, Outcome, Workload, weakest
from .errors import UsageError
from .points import Kind, SweepPoint, sweep
from .session import Request, Session
from .spec import TrialResult

TRIES = 2
"""A point that a trial did not reach is tried again this often in all: some lines run in some trials only."""

SLOWDOWN = 1.7
"""A trial with a kill takes about so many times the reference trial's time: it starts a second driver."""


@dataclass(frozen=True)
class PointResult:
    """A point with its trial; ``error`` where the trial could not be run to a verdict."""

    point: SweepPoint
    result: TrialResult
    tries: int = 1

    @property
    def outcome(self) -> Outcome:
        return self.result.verdict.outcome


@dataclass(frozen=True)
class Certificate:
    """The judgement over a sweep: the weakest of its trials decides."""

    request: Request
    reference: TrialResult
    batch: int
    planned: int
    points: Sequence[PointResult]
    seconds: float

    @property
    def trials(self) -> list[TrialResult]:
        return [self.reference, *(point.result for point in self.points)]

    @property
    def outcome(self) -> Outcome:
        """fail outranks inconclusive outranks pass; a sweep that was cut short cannot pass."""
        outcomes = {trial.verdict.outcome for trial in self.trials}
        if Outcome.FAIL in outcomes:
            return Outcome.FAIL
        if Outcome.INCONCLUSIVE in outcomes or len(self.points) < self.planned or not self.points:
            return Outcome.INCONCLUSIVE
        return Outcome.PASS

    @property
    def guarantee(self) -> Guarantee | None:
        """The weakest guarantee of the trials that have one."""
        if self.outcome is Outcome.INCONCLUSIVE:
            return None
        return weakest(trial.verdict.guarantee for trial in self.trials if trial.verdict.guarantee)


@dataclass(frozen=True)
class Sweep:
    """What is going to be run, known after the reference trace. ``expected`` is in seconds."""

    reference: TrialResult
    points: Sequence[SweepPoint]
    expected: float


def certify(
    session: Session,
    request: Request,
    directory: Path,
    *,
    batch: int = 1,
    kind: Kind = "all",
    parallel: int = 1,
    fail_fast: bool = False,
    announce: Callable[[Sweep], None] = lambda sweep: None,
    done: Callable[[PointResult], None] = lambda result: None,
) -> Certificate:
    """Run the sweep of one sink; ``announce`` is called before it starts and ``done`` after each trial.

    Each trial's run directory lies under ``directory``. With ``fail_fast`` the first failed point ends the sweep.
    Raises what a trial raises: SinkError, UsageError, Unavailable.
    """
    check_batch(batch, request.workload)
    start = time.monotonic()
    reference = session.trial(replace(request, plan="", trace=True, directory=directory / "000-reference"))
    points = sweep(reference.journal, batch, kind)
    announce(Sweep(reference, points, _expected(reference, len(points), parallel)))
    stop_early = fail_fast and reference.verdict.outcome is Outcome.FAIL
    results = [] if stop_early else _Lanes(session, request, directory, fail_fast, done).run(points, parallel)
    return Certificate(request, reference, batch, len(points), results, time.monotonic() - start)


def check_batch(batch: int, workload: Workload) -> None:
    """Raises UsageError for a batch that the workload does not have."""
    if not 0 <= batch < workload.batches:
        raise UsageError(f"--batch {batch} is beyond the workload: it has batches 0 to {workload.batches - 1}")


def _expected(reference: TrialResult, points: int, parallel: int) -> float:
    return points * reference.timings["total"] * SLOWDOWN / max(1, min(parallel, 2))


Ended = queue.SimpleQueue[tuple[int, PointResult] | BaseException | None]
"""What lanes report: a point's number and result, the exception that ended a lane, None at a lane's end."""


class _Lanes:
    """Runs points in ``parallel`` threads; an exception in one of them ends all and is raised."""

    def __init__(
        self, session: Session, request: Request, directory: Path, fail_fast: bool, done: Callable[[PointResult], None]
    ) -> None:
        self._session = session
        self._request = request
        self._directory = directory
        self._fail_fast = fail_fast
        self._done = done
        self._stopped = threading.Event()

    def run(self, points: Sequence[SweepPoint], parallel: int) -> list[PointResult]:
        work: queue.SimpleQueue[tuple[int, SweepPoint]] = queue.SimpleQueue()
        for item in enumerate(points):
            work.put(item)
        ended: Ended = queue.SimpleQueue()
        lanes = [threading.Thread(target=self._lane, args=(work, ended), daemon=True) for _ in range(parallel)]
        for lane in lanes:
            lane.start()
        try:
            return self._gather(ended, len(lanes))
        finally:
            self._stopped.set()

    def _gather(
        self, ended: queue.SimpleQueue[tuple[int, PointResult] | BaseException | None], lanes: int
    ) -> list[PointResult]:
        results: dict[int, PointResult] = {}
        while lanes:
            item = ended.get()
            if item is None:
                lanes -= 1
            elif isinstance(item, BaseException):
                raise item
            else:
                results[item[0]] = item[1]
                self._done(item[1])
        return [results[number] for number in sorted(results)]

    def _lane(self, work: queue.SimpleQueue[tuple[int, SweepPoint]], ended: Ended) -> None:
        try:
            while not self._stopped.is_set():
                try:
                    number, point = work.get_nowait()
                except queue.Empty:
                    break
                result = self._point(number, point)
                if self._fail_fast and result.outcome is Outcome.FAIL:
                    self._stopped.set()
                ended.put((number, result))
        except BaseException as error:
            ended.put(error)
        ended.put(None)

    def _point(self, number: int, point: SweepPoint) -> PointResult:
        for attempt in range(1, TRIES + 1):
            suffix = "" if attempt == 1 else f"-{attempt}"
            directory = self._directory / f"{number + 1:03d}{suffix}"
            result = self._session.trial(replace(self._request, plan=point.text, directory=directory))
            reached = all(fault.reached for fault in result.verdict.faults)
            if reached or result.verdict.outcome is not Outcome.INCONCLUSIVE:
                break
        return PointResult(point, result, attempt)
