"""Starts the driver, and again on the same checkpoint when it dies, as YARN, Kubernetes or a CI loop would."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..environments.base import DeadAlready, Driver, EffectError, end_all
from ..runtime.waiting import WaitTimeout, wait_for
from .idleness import Idleness

RESTARTS = 4
"""How often a driver that dies unplanned, without the job having made progress, is started again."""

BACK_OFF = (1.0, 4.0, 12.0, 30.0)
"""Seconds before each of these starts, as cluster managers wait: what the driver died of may pass, such as a lease of a
minute that somebody else holds. Not before a fault has fired."""

HANGS = 2
"""How often a driver that hangs after a fault, without the job having made progress or met another fault, is ended and
started again."""

REAP = 5.0
"""Seconds within which the exit code of a driver that was killed is there."""

DRAIN = 10.0
"""Seconds that a driver's other processes have to end after its main process did."""

QUIET = 2.0
"""Seconds without progress after which a job whose input is committed has nothing left to do: a batch without data, if
there is one, follows the last one at the next trigger."""

POLL = 0.1
"""Seconds between two looks at the drivers."""


@dataclass(frozen=True)
class JobOutcome:
    """How the job ended: by itself with exit code 0, or given up at ``batch`` with ``error``."""

    finished: bool
    error: str | None = None
    batch: int | None = None
    hung: bool = False


@dataclass
class Incarnation:
    """One start of the driver. ``planned`` is set before a fault ends it, ``replaced`` once another one took over,
    ``stayed`` before it is ended because it had nothing left to do and did not end by itself.

    ``restart_after``: seconds from its planned end to the next start.
    """

    number: int
    driver: Driver
    planned: bool = False
    replaced: bool = False
    stayed: bool = False
    code: int | None = None
    restart_after: float = 0.0

    @property
    def ended(self) -> bool:
        return self.code is not None


class Progress(Protocol):
    """What the supervisor needs to know of the trial."""

    def committed_batches(self) -> int: ...

    def started_batch(self) -> int | None:
        """The batch that was last handed to the sink."""

    def consequences(self) -> int:
        """How many things were done by which a driver may fail by itself."""

    @property
    def fired(self) -> bool:
        """Whether any fault fired."""

    def idle_seconds(self) -> float:
        """Seconds since there was any progress or a planned action was under way."""

    def starting(self) -> bool:
        """Whether the driver that was started last has not handed a batch to the sink yet."""

    def querying(self) -> bool:
        """Whether the driver that was started last has started its query."""

    def committing(self) -> bool:
        """Whether the driver that was started last has committed a batch."""

    def ended_queries(self) -> Collection[str]:
        """The processes of drivers whose query has ended, well or not."""

    def busy(self) -> bool:
        """Whether a fault's actions are under way."""

    def holding(self) -> bool:
        """Whether the plan holds threads of the job."""

    def release(self, reason: str | None = None) -> None:
        """Let go of all that is held or paused: nothing that it waits for can come any more. With a ``reason``, the
        faults that still hold something have failed by it."""


@dataclass
class Supervisor:
    """Runs one job to its end. ``start`` starts incarnation n; ``error_of`` finds its exception in its log, one line;
    ``complete`` says whether all input is committed: a driver that ends before that has died, whatever its exit code.

    ``stop`` asks a job that does not end by itself to do so; it is called once the input is committed and nothing has
    moved for QUIET seconds. Where a query has ``epochs``, which come without an end and whether there is input
    or not, it is called that long after the newest driver has ended one with all input committed.

    ``deadline`` bounds the seconds in which the job is idle (:class:`.idleness.Idleness`). A driver that stays for so
    long after its query, with all input committed, is ended: the job has finished. ``before_restart`` is called after
    each end of a driver that another one follows, when none runs.
    """

    start: Callable[[int], Driver]
    complete: Callable[[], bool]
    error_of: Callable[[int], str | None]
    record: Callable[[str, Mapping[str, Any]], None]
    progress: Progress
    deadline: float
    before_restart: Callable[[], None] = lambda: None
    stop: Callable[[], None] | None = None
    epochs: bool = False
    back_off: Sequence[float] = BACK_OFF
    incarnations: list[Incarnation] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _wake: threading.Event = field(default_factory=threading.Event)
    _idleness: Idleness = field(init=False)
    _through_since: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._idleness = Idleness(self._processor_seconds)

    def run(self) -> JobOutcome:
        """Returns when no driver runs any more: the job has ended, or is given up."""
        strikes, committed, consequences, hangs = 0, 0, 0, 0
        self._launch()
        while True:
            if not self._ended_in_time():
                moved = self.progress.committed_batches() > committed
                excused = self.progress.consequences() > consequences
                hangs = 1 if moved or excused else hangs + 1
                if not self.progress.fired or hangs > HANGS:
                    return self._give_up_hanging()
                self._end_hanging()
                committed, consequences = self.progress.committed_batches(), self.progress.consequences()
                self.before_restart()
                self._launch()
                continue
            newest, pause = self.incarnations[-1], 0.0
            if (newest.code == 0 or newest.stayed) and self.complete():
                return JobOutcome(finished=True)
            if newest.planned:
                strikes = 0
            else:
                moved = self.progress.committed_batches() > committed
                excused = self.progress.consequences() > consequences
                strikes = (0 if moved else strikes) + (0 if excused else 1)
                if strikes > RESTARTS:
                    if not self._let_go(f"after {strikes} failures of the job in a row"):
                        return self._give_up(newest)
                    strikes = 0
                pause = self.back_off[strikes - 1] if strikes and self.progress.fired else 0.0
            committed, consequences = self.progress.committed_batches(), self.progress.consequences()
            self._wait_until_actions_are_done()
            self.before_restart()
            threading.Event().wait(newest.restart_after if newest.planned else pause)
            self._launch()

    def driver_of(self, process: str | None) -> Incarnation:
        """The incarnation to which ``process`` belongs, else the newest one."""
        with self._lock:
            for incarnation in self.incarnations:
                if not incarnation.ended and incarnation.driver.holds(process):
                    return incarnation
            if not self.incarnations:
                raise EffectError("no driver runs yet")
            return self.incarnations[-1]

    def kill(self, process: str | None, restart_after: float = 0.0) -> str:
        """The machine of the driver to which ``process`` belongs dies; returns once that is confirmed. Raises
        EffectError, also where it had died by itself: what follows that is no effect of a plan."""
        with self._planned_end(process, restart_after) as driver:
            detail = driver.kill()
        self._wake.set()
        return detail

    def terminate(self, process: str | None, restart_after: float = 0.0) -> tuple[Driver, str]:
        """SIGTERM to the driver to which ``process`` belongs; returns it, and what was done, without waiting. Raises
        EffectError, also where it has ended."""
        with self._planned_end(process, restart_after) as driver:
            return driver, driver.terminate()

    @contextmanager
    def _planned_end(self, process: str | None, restart_after: float) -> Iterator[Driver]:
        incarnation = self.driver_of(process)
        if incarnation.ended:
            raise DeadAlready(f"no driver runs: {incarnation.driver.process} has ended, and none has followed it yet")
        incarnation.planned, incarnation.restart_after = True, restart_after
        try:
            yield incarnation.driver
        except DeadAlready:
            incarnation.planned, incarnation.restart_after = False, 0.0
            raise

    def replace(self, incarnation: Incarnation) -> str:
        """Pause a driver; the cluster takes the silent one for dead and starts another one. Raises EffectError."""
        detail = incarnation.driver.pause()
        incarnation.replaced = True
        with self._lock:
            self._launch()
        return detail

    @contextmanager
    def still(self, process: str | None) -> Iterator[None]:
        """Keep the driver to which ``process`` belongs still; nobody takes it for dead."""
        driver = self.driver_of(process).driver
        driver.pause()
        try:
            yield
        finally:
            driver.resume()

    def end(self) -> None:
        """End what still runs."""
        with self._lock:
            for incarnation in self.incarnations:
                if not incarnation.ended:
                    self._end(incarnation)

    def _end(self, incarnation: Incarnation) -> None:
        incarnation.planned = True
        end_all(incarnation.driver)
        code = incarnation.driver.wait(REAP)
        self._note_exit(incarnation, -signal.SIGKILL if code is None else code)

    def stopwatch(self) -> Callable[[], float]:
        """Counts the seconds from now on as they would be on a machine that is free, without those in which a driver
        works that starts; to be asked often."""
        clock, began = Idleness(self._processor_seconds), time.monotonic()
        return lambda: clock.seconds(time.monotonic() - began, self.progress.starting())

    def alive(self) -> list[str]:
        return [process for incarnation in self.incarnations for process in incarnation.driver.alive()]

    def _launch(self) -> None:
        with self._lock:
            number = len(self.incarnations) + 1
            driver = self.start(number)
            self.incarnations.append(Incarnation(number, driver))
            self.record("driver.started", {"incarnation": number, "process": driver.process})

    def _ended_in_time(self) -> bool:
        """Wait until no driver runs any more; False when nothing has moved for longer than the deadline."""
        still = f"after {self.deadline:g} s in which nothing moved (--deadline)"
        while self._idle_seconds() <= self.deadline or self._let_go(still) or self._ended_those_that_stay():
            self._collect()
            with self._lock:
                running = [incarnation for incarnation in self.incarnations if not incarnation.ended]
            if not running:
                return True
            if all(incarnation.replaced for incarnation in running):
                self.progress.release()
            self._stop_if_done()
            self._wake.wait(POLL)
            self._wake.clear()
        return False

    def _stop_if_done(self) -> None:
        if self.stop is None or not self.progress.querying() or self.progress.holding():
            return
        if self._through_for(QUIET) if self.epochs else self.progress.idle_seconds() >= QUIET and self.complete():
            self.record("job.stopping", {})
            self.stop()
            self.stop = None

    def _through_for(self, seconds: float) -> bool:
        """Whether the input has been committed for so long, and epochs end."""
        now = time.monotonic()
        through = self.progress.committing() and self.complete()
        self._through_since = (self._through_since or now) if through else None
        return self._through_since is not None and now - self._through_since >= seconds

    def _idle_seconds(self) -> float:
        return self._idleness.seconds(self.progress.idle_seconds(), self.progress.starting())

    def _processor_seconds(self) -> float | None:
        """Of all drivers that run; None where it is not known."""
        used = [one.driver.processor_seconds() for one in self.incarnations if not one.ended]
        return None if None in used else sum(seconds or 0.0 for seconds in used)

    def _let_go(self, when: str) -> bool:
        """Whether it is the plan that holds the job up: then that is no hang and no failure of the job's own, and it
        goes on without the plan's holds."""
        if not self.progress.holding():
            return False
        self.progress.release(f"its hold was let go {when}")
        return True

    def _ended_those_that_stay(self) -> bool:
        """Whether drivers were left that had nothing to do any more, with all input committed: they are ended now."""
        queries = self.progress.ended_queries()
        staying = [one for one in self.incarnations if not one.ended and any(map(one.driver.holds, queries))]
        if not staying or not self.complete():
            return False
        for incarnation in staying:
            self.record("driver.stayed", {"incarnation": incarnation.number, "seconds": self.deadline})
            incarnation.stayed = True
            self._end(incarnation)
        return True

    def _collect(self) -> None:
        with self._lock:
            for incarnation in self.incarnations:
                code = None if incarnation.ended else incarnation.driver.wait(0)
                if code is not None:
                    self._note_exit(incarnation, code)

    def _note_exit(self, incarnation: Incarnation, code: int) -> None:
        incarnation.code = code
        error = self.error_of(incarnation.number) if code and not incarnation.planned else None
        self._drain(incarnation)
        self.record(
            "driver.exited",
            {"incarnation": incarnation.number, "code": code, "planned": incarnation.planned, "error": error},
        )

    def _drain(self, incarnation: Incarnation) -> None:
        """Wait for what the driver's main process left running (its JVM shutting down), then end it."""
        try:
            wait_for(lambda: not incarnation.driver.alive(), DRAIN, "the end of the driver's other processes")
        except WaitTimeout:
            self.record("driver.leftover", {"processes": incarnation.driver.alive()})
            end_all(incarnation.driver)

    def _wait_until_actions_are_done(self) -> None:
        while self.progress.busy():
            self._wake.wait(POLL)
            self._wake.clear()

    def _give_up(self, last: Incarnation) -> JobOutcome:
        batch = self.progress.started_batch()
        # What a driver that ends with code 0 has logged is no reason: something in it ended the process.
        logged = self.error_of(last.number) if last.code else None
        error = logged or f"the driver ended with exit code {last.code} before its input's end"
        self.record("driver.gave_up", {"batch": batch, "error": error})
        return JobOutcome(finished=False, error=error, batch=batch)

    def _end_hanging(self) -> None:
        """End a driver that a fault left hanging, as an operator would: its restart may get through."""
        self.record("driver.hung", {"batch": self.progress.started_batch(), "seconds": self.deadline})
        self.end()

    def _give_up_hanging(self) -> JobOutcome:
        batch = self.progress.started_batch()
        error = f"no progress for {self.deadline:g} s"
        self.record("driver.gave_up", {"batch": batch, "error": error})
        self.end()
        return JobOutcome(finished=False, error=error, batch=batch, hung=True)
