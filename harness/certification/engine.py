"""Runs the points of a sweep: packed where that is possible, again alone where a packed run leaves a question."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...assertions import Outcome, Verdict
from ...faults import format_plan
from ..errors import SinkError, Unavailable, one_line
from ..request import Request
from ..session import Session
from ..trial.spec import TrialResult
from .attribution import attribute
from .packing import Pack
from .points import SweepPoint
from .recoveries import shows_a_recovery
from .results import SEVERAL, PointResult, Store, judged
from .trace import Step

TRIES = 5
"""A point that a trial did not reach is tried again this often in all: a thread that beats a heart runs a line, or asks
for something, in some batches only, and some of it depends on how tasks took turns."""

TRIES_OF_ONE_OF_SEVERAL = 2
"""The same where another point may stand for it: it may wait for what cannot come."""

TRIES_OF_WHAT_WAS_REACHED = 2
"""The same where it was reached, and the fault could not be carried out: a process may die by itself just then."""

BROKEN = 3
"""So many points in a row without an environment to run in, each tried twice, end a sweep: the rest would fare no
better."""


@dataclass
class _Work:
    """What is still to be run, and by how many lanes something is being run that may bring more."""

    waiting: deque[Pack]
    running: int = 0
    stopped: bool = False
    broken: int = 0
    failure: BaseException | None = None
    changed: threading.Condition = field(default_factory=threading.Condition)


class Engine:
    """Runs packs of points in ``parallel`` lanes; each result is stored, and given to ``done``, as soon as it is there.

    A trial that ends in an error is a result too (inconclusive, with the error as its reason). With ``fail_fast`` the
    first failed point ends the sweep.
    """

    def __init__(
        self,
        session: Session,
        request: Request,
        directory: Path,
        store: Store,
        *,
        fail_fast: bool = False,
        done: Callable[[PointResult], None] = lambda result: None,
    ) -> None:
        self._session = session
        self._request = request
        self._directory = directory
        self._store = store
        self._fail_fast = fail_fast
        self._done = done
        self._numbers = threading.Lock()
        self._number = 0

    def run(self, packs: Sequence[Pack], parallel: int) -> bool:
        """Whether all points have a result: not if the sweep was ended early. Raises KeyboardInterrupt as it comes."""
        shared, own = ([pack for pack in packs if pack.exclusive is exclusive] for exclusive in (False, True))
        return self._run(shared, parallel) and self._run(own, 1)

    def _run(self, packs: Sequence[Pack], parallel: int) -> bool:
        work = _Work(deque(packs))
        lanes = [threading.Thread(target=self._lane, args=(work,), daemon=True) for _ in range(parallel)]
        for lane in lanes:
            lane.start()
        try:
            for lane in lanes:
                while lane.is_alive():
                    lane.join(0.2)  # in steps: a signal is handled between them
            goes_on = not work.stopped
        finally:
            with work.changed:
                work.stopped = True
                work.changed.notify_all()
        if work.failure is not None:
            raise work.failure
        return goes_on

    def _lane(self, work: _Work) -> None:
        try:
            while (pack := _next(work)) is not None:
                again = self._pack(work, pack)
                with work.changed:
                    work.waiting.extendleft(reversed(again))
                    work.running -= 1
                    work.changed.notify_all()
        except BaseException as error:
            with work.changed:
                work.failure, work.stopped = error, True
                work.changed.notify_all()

    def _pack(self, work: _Work, pack: Pack) -> list[Pack]:
        """Run a pack; returns what has to run again, each point alone."""
        if len(pack.points) == 1:
            self._alone(work, pack)
            return []
        try:
            result = self._trial(pack)
        except Exception:  # each point by itself says what is wrong
            return [Pack((point,)) for point in pack.points]
        work.broken = 0
        found = attribute(pack.shares, result.evidence, result.verdict)
        share = result.timings["total"] / len(pack.points)
        for point, one in zip(pack.points, found, strict=True):
            if one.verdict is not None:
                self._keep(work, _result(point, one.verdict, share, result.directory, 1, pack))
        unclear = [Pack((point,)) for point, one in zip(pack.points, found, strict=True) if one.verdict is None]
        if result.verdict.exactly_once is Outcome.FAIL and unclear:
            # What only several faults in one run show counts as well: it must not be lost if each passes alone.
            self._store.add(_of_the_run(pack, result))
        return unclear

    def _alone(self, work: _Work, pack: Pack) -> None:
        (point,) = pack.points
        for attempt in range(1, (TRIES_OF_ONE_OF_SEVERAL if point.way else TRIES) + 1):
            try:
                result = self._undisturbed(work, pack)
            except Exception as error:
                if work.stopped:  # the environment was closed under it: that is no result
                    return
                self._keep(work, _ended_in_an_error(point, error, attempt, self._directory))
                with work.changed:
                    work.broken = work.broken + 1 if isinstance(error, Unavailable) else 0
                    work.stopped = work.stopped or work.broken >= BROKEN
                return
            work.broken = 0
            reached = all(fault.reached for fault in result.verdict.faults)
            if result.verdict.outcome is not Outcome.INCONCLUSIVE or (reached and attempt >= TRIES_OF_WHAT_WAS_REACHED):
                break
        self._keep(work, _result(point, result.verdict, result.timings["total"], result.directory, attempt, pack))

    def _undisturbed(self, work: _Work, pack: Pack) -> TrialResult:
        """A trial, and a second one where the environment broke by itself: that says nothing of the point."""
        try:
            return self._trial(pack)
        except Unavailable:
            if work.stopped:
                raise
            return self._trial(pack)

    def _trial(self, pack: Pack) -> TrialResult:
        asked = replace(
            self._request,
            plan=format_plan(pack.plan),
            trace=any(point.traced for point in pack.points),
            every_line=any(map(shows_a_recovery, pack.points)),
            directory=self._next_directory(),
        )
        return self._session.trial(asked)

    def _next_directory(self) -> Path:
        """A new run directory: a sweep that goes on leaves those of the trials that were cut short as they are."""
        with self._numbers:
            while True:
                self._number += 1
                path = self._directory / f"{self._number:03d}"
                if not path.exists():
                    path.mkdir(parents=True)
                    return path

    def _keep(self, work: _Work, result: PointResult) -> None:
        self._store.add(result)
        self._done(result)
        if self._fail_fast and result.verdict == "fail":
            with work.changed:
                work.stopped = True
                work.changed.notify_all()


def _next(work: _Work) -> Pack | None:
    """The next pack; None once nothing is left and nothing that runs can bring more."""
    with work.changed:
        work.changed.wait_for(lambda: work.stopped or work.waiting or not work.running)
        if work.stopped or not work.waiting:
            work.changed.notify_all()
            return None
        work.running += 1
        return work.waiting.popleft()


def _result(
    point: SweepPoint, verdict: Verdict, seconds: float, directory: Path, tries: int, pack: Pack
) -> PointResult:
    return PointResult(
        **judged(verdict, seconds, directory).model_dump(),
        **_place_of(point),
        tries=tries,
        reached=all(fault.reached for fault in verdict.faults),
        landed=all(fault.confirmed for fault in verdict.faults),
        packed=len(pack.points),
    )


def _place_of(point: SweepPoint) -> dict[str, Any]:
    """The fields of a result that say where it was."""
    cell = (point.step, point.action, point.role)
    return {"step": point.label, "plan": point.text, "cell": cell, "batch": point.batch}


def _ended_in_an_error(point: SweepPoint, error: Exception, tries: int, directory: Path) -> PointResult:
    return PointResult(
        verdict="inconclusive",
        exactly_once="inconclusive",
        guarantee=None,
        reason=f"the trial ended in an error: {type(error).__name__}: {one_line(error)}",
        anomalies={},
        seconds=0.0,
        run_directory=str(directory),
        **_place_of(point),
        tries=tries,
        reached=False,
        landed=False,
        without_trial=True,
        own_error=one_line(error) if isinstance(error, SinkError) else None,
        packed=1,
    )


def _of_the_run(pack: Pack, result: TrialResult) -> PointResult:
    steps = "; ".join(point.label for point in pack.points)
    point = SweepPoint(Step(SEVERAL[0]), SEVERAL[1], SEVERAL[2], None, pack.plan)
    found = _result(point, result.verdict, result.timings["total"], result.directory, 1, pack)
    return found.model_copy(update={"step": f"several faults in one run: {steps}"})
