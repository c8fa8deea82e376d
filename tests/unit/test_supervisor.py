"""The supervisor, with drivers on paper."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from onceproof.faults import parse
from onceproof.harness.environments.base import DeadAlready, EffectError
from onceproof.harness.trial import supervisor as module
from onceproof.harness.trial.progress import TrialProgress
from onceproof.harness.trial.supervisor import HANGS, RESTARTS, Incarnation, JobOutcome, Supervisor


@dataclass
class HeldJob:
    """A driver that the plan holds up until it is let go, and what the harness knows of it."""

    reasons: list[str | None] = field(default_factory=list)
    process: str = "local:1"

    def wait(self, timeout: float) -> int | None:
        return 0 if self.reasons else None

    def alive(self) -> list[str]:
        return [] if self.reasons else [self.process]

    def kill(self) -> str:
        raise AssertionError("the job did not hang by itself")

    def pause(self) -> str:
        raise NotImplementedError

    resume = pause

    def holding(self) -> bool:
        return not self.reasons

    def release(self, reason: str | None = None) -> None:
        self.reasons.append(reason)

    def idle_seconds(self) -> float:
        return 0.0 if self.reasons else 99.0

    def busy(self) -> bool:
        return False

    def committed_batches(self) -> int:
        return 0

    def started_batch(self) -> int | None:
        return None

    def consequences(self) -> int:
        return 0

    def starting(self) -> bool:
        return False

    def processor_seconds(self) -> None:
        return None

    def querying(self) -> bool:
        return True

    def committing(self) -> bool:
        return True

    def ended_queries(self) -> list[str]:
        return []


@dataclass
class EndlessJob(HeldJob):
    """A driver whose query goes on until it is asked to stop; nothing is reported of it any more."""

    asked: list[bool] = field(default_factory=list)
    complete: bool = True
    queries: bool = True
    commits: bool = True

    def wait(self, timeout: float) -> int | None:
        return 0 if self.asked else None

    def alive(self) -> list[str]:
        return []

    def holding(self) -> bool:
        return False

    def querying(self) -> bool:
        return self.queries

    def committing(self) -> bool:
        return self.commits

    def idle_seconds(self) -> float:
        return 3.0

    @property
    def fired(self) -> bool:
        return False


def endless(job: EndlessJob, events: list[str], deadline: float = 60.0) -> Supervisor:
    driver: Any = job
    return Supervisor(
        start=lambda number: driver,
        complete=lambda: job.complete,
        error_of=lambda number: None,
        record=lambda event, fields: events.append(event),
        progress=driver,
        deadline=deadline,
        stop=lambda: job.asked.append(True),
    )


def test_a_job_that_does_not_end_by_itself_is_asked_to_stop_once() -> None:
    job, events = EndlessJob(), list[str]()
    assert endless(job, events).run() == JobOutcome(finished=True)
    assert (job.asked, events) == ([True], ["driver.started", "job.stopping", "driver.exited"])


@pytest.mark.parametrize("lacking", ["complete", "queries"])
def test_a_job_is_not_asked_to_stop_before_its_query_has_committed_its_input(lacking: str) -> None:
    job, events = EndlessJob(), list[str]()
    setattr(job, lacking, False)
    supervisor = endless(job, events)
    supervisor._launch()
    supervisor._stop_if_done()
    assert (job.asked, events) == ([], ["driver.started"])


@pytest.mark.parametrize("commits", [True, False])
def test_epochs_are_stopped_when_the_newest_driver_ends_one(commits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was committed before a death says nothing of what a replay still has to do."""
    monkeypatch.setattr(module, "QUIET", 0.0)
    job = EndlessJob(commits=commits)
    supervisor = endless(job, [])
    supervisor.epochs = True
    supervisor._launch()
    supervisor._stop_if_done()
    assert bool(job.asked) == commits


def test_a_job_that_the_plan_holds_up_is_let_go_instead_of_given_up() -> None:
    job, events = HeldJob(), list[str]()

    def record(event: str, fields: Mapping[str, Any]) -> None:
        events.append(event)

    outcome = Supervisor(lambda number: job, lambda: True, lambda number: None, record, job, deadline=5.0).run()
    assert outcome.finished
    assert job.reasons == ["its hold was let go after 5 s in which nothing moved (--deadline)"]
    assert events == ["driver.started", "driver.exited"]


@dataclass
class Dying:
    """A driver that fails as soon as it has been started."""

    process: str

    def holds(self, process: str | None) -> bool:
        return False

    def wait(self, timeout: float) -> int | None:
        return 1

    def alive(self) -> list[str]:
        return []

    def processor_seconds(self) -> None:
        return None

    def kill(self) -> str:
        raise AssertionError("it is dead")

    pause = resume = kill


AT_ONCE = (0.0,) * RESTARTS


def deaths_until_given_up(
    healed_after: int, healing: str = "network.healed", back_off: tuple[float, ...] = AT_ONCE
) -> int:
    """How many drivers are started, one after the other, if the network is cut from before the first one on until the
    ``healed_after``-th has started."""
    progress = TrialProgress(parse("sink.write:before -> partition(driver, peer=broker2, for=20s)"))
    events = list[str]()
    link = {"process": "driver:1", "peer": "broker2"}

    def record(event: str, fields: Mapping[str, Any]) -> None:
        events.append(event)
        progress.note(event, fields)

    def start(number: int) -> Dying:
        if number == healed_after:
            record(healing, link)
        return Dying(f"driver:{number}")

    record("fault.fired", {"fault": 0, "number": 0})
    record("network.cut", link)
    supervisor = Supervisor(
        start, lambda: False, lambda number: "TimeoutException", record, progress, deadline=5.0, back_off=back_off
    )
    outcome = supervisor.run()
    assert (outcome.finished, outcome.error) == (False, "TimeoutException")
    assert events[-1] == "driver.gave_up"
    return events.count("driver.exited")


def test_a_job_that_fails_while_its_network_is_cut_is_not_given_up_before_it_is_healed() -> None:
    assert deaths_until_given_up(healed_after=20) == 20 + RESTARTS


def test_a_network_that_cannot_be_healed_is_no_excuse_for_ever() -> None:
    assert deaths_until_given_up(healed_after=20, healing="environment.failure") == 20 + RESTARTS


def test_a_partition_excuses_one_death_also_after_its_healing() -> None:
    assert deaths_until_given_up(healed_after=1) == 1 + RESTARTS + 1


def test_each_further_start_of_a_driver_that_dies_again_is_later() -> None:
    begin = time.monotonic()
    assert deaths_until_given_up(healed_after=1, back_off=(0.01, 0.02, 0.2, 0.4)) == 1 + RESTARTS + 1
    assert time.monotonic() - begin > 0.6


class Holding(TrialProgress):
    """A thread is held until it is let go."""

    reasons: list[str | None]

    def __init__(self) -> None:
        super().__init__(parse(""))
        self.reasons = []

    def holding(self) -> bool:
        return not self.reasons

    def release(self, reason: str | None = None) -> None:
        self.reasons.append(reason)


def test_a_job_that_fails_again_and_again_while_the_plan_holds_a_thread_goes_on_without_its_hold() -> None:
    progress, events = Holding(), list[str]()

    def record(event: str, fields: Mapping[str, Any]) -> None:
        events.append(event)

    supervisor = Supervisor(
        lambda number: Dying(f"driver:{number}"),
        lambda: False,
        lambda number: "TimeoutException",
        record,
        progress,
        deadline=5.0,
        back_off=AT_ONCE,
    )
    assert not supervisor.run().finished
    assert progress.reasons == [f"its hold was let go after {RESTARTS + 1} failures of the job in a row"]
    assert events.count("driver.exited") == 2 * (RESTARTS + 1)


def test_a_planned_death_begins_the_count_of_failures_anew() -> None:
    """The batch that would show progress is not committed because of that death, not because of the job."""
    events = list[str]()
    progress = TrialProgress(parse("sink.write:before -> kill(driver)"))
    progress.note("fault.fired", {"fault": 0, "number": 0})

    class Killed(Dying):
        """Its death is the plan's."""

        def wait(self, timeout: float) -> int | None:
            supervisor.incarnations[-1].planned = True
            return -9

    def start(number: int) -> Dying:
        return Killed("driver:killed") if number == RESTARTS + 1 else Dying(f"driver:{number}")

    supervisor = Supervisor(
        start, lambda: False, lambda number: "RuntimeError",
        lambda event, fields: events.append(event), progress, deadline=5.0, back_off=AT_ONCE,
    )  # fmt: skip
    assert not supervisor.run().finished
    assert events.count("driver.exited") == RESTARTS + 1 + RESTARTS + 1


def test_a_moment_before_the_first_driver_has_nothing_to_act_on() -> None:
    job = HeldJob()
    supervisor = Supervisor(
        lambda number: job, lambda: True, lambda number: None, lambda *event: None, job, deadline=5.0
    )
    with pytest.raises(EffectError, match="no driver runs yet"):
        supervisor.kill(None)


@dataclass
class Hanging(Dying):
    """A driver that does nothing until it is killed; with ``code`` it ends by itself."""

    code: int | None = None

    def wait(self, timeout: float) -> int | None:
        return self.code

    def kill(self) -> str:
        self.code = -9
        return self.process

    def alive(self) -> list[str]:
        return [self.process] if self.code is None else []


class Idle(TrialProgress):
    """Nothing has moved for long."""

    def idle_seconds(self) -> float:
        return 99.0


def run_hanging(fired: bool, hangs: int) -> tuple[JobOutcome, list[str], list[Mapping[str, Any]]]:
    """A job of which the first ``hangs`` drivers hang; its outcome, its events, and how the drivers ended."""
    progress, events, exits = Idle(parse("")), list[str](), list[Mapping[str, Any]]()

    def record(event: str, fields: Mapping[str, Any]) -> None:
        events.append(event)
        exits.extend([fields] if event == "driver.exited" else [])
        progress.note(event, fields)

    def start(number: int) -> Hanging:
        if number > hangs:
            progress.idle_seconds = lambda: 0.0  # type: ignore[method-assign]
        return Hanging(f"driver:{number}", code=0 if number > hangs else None)

    if fired:
        record("fault.fired", {"action": "kill(driver)"})
    supervisor = Supervisor(
        start, lambda: True, lambda number: None, record, progress, 5.0, before_restart=lambda: events.append("dead")
    )
    return supervisor.run(), events, exits


def test_a_driver_that_hangs_after_a_fault_is_ended_and_started_again() -> None:
    outcome, events, exits = run_hanging(fired=True, hangs=HANGS)
    assert outcome.finished
    assert events.count("driver.hung") == events.count("dead") == HANGS
    assert [one["code"] for one in exits] == [-9] * HANGS + [0]
    assert all(one["planned"] for one in exits[:HANGS])


def test_a_hang_is_stuck_only_after_its_restarts_hang_too() -> None:
    outcome, events, exits = run_hanging(fired=True, hangs=99)
    assert (outcome.finished, outcome.hung, outcome.error) == (False, True, "no progress for 5 s")
    assert (events.count("driver.started"), events[-2:]) == (1 + HANGS, ["driver.gave_up", "driver.exited"])
    assert len(exits) == 1 + HANGS


def test_a_driver_that_hangs_before_any_fault_is_not_started_again() -> None:
    outcome, events, _ = run_hanging(fired=False, hangs=99)
    assert (outcome.hung, events.count("driver.started")) == (True, 1)


@dataclass
class Staying(Hanging):
    """A driver whose query may end, and whose process does not."""

    def holds(self, process: str | None) -> bool:
        return process == self.process


def run_staying(ended: bool = True, complete: bool = True) -> tuple[JobOutcome, list[str]]:
    """A job after a fault; whether its queries end, and all input is committed then."""
    progress, events = Idle(parse("")), list[str]()

    def record(event: str, fields: Mapping[str, Any]) -> None:
        events.append(event)
        progress.note(event, fields)

    def start(number: int) -> Staying:
        if ended:
            progress.note("query.ended", {"process": f"driver:{number}"})
        return Staying(f"driver:{number}")

    record("fault.fired", {"action": "kill(driver)"})
    outcome = Supervisor(start, lambda: complete, lambda number: None, record, progress, deadline=5.0).run()
    return outcome, events


def test_a_driver_that_stays_after_its_query_has_committed_all_input_is_ended_and_the_job_has() -> None:
    assert run_staying() == (
        JobOutcome(finished=True),
        ["fault.fired", "driver.started", "driver.stayed", "driver.exited"],
    )


@pytest.mark.parametrize("lacking", ["ended", "complete"])
def test_a_driver_hangs_whose_query_goes_on_or_has_left_input(lacking: str) -> None:
    outcome, events = run_staying(**{lacking: False})
    assert (outcome.finished, outcome.hung) == (False, True)
    assert (events.count("driver.hung"), "driver.stayed" in events) == (HANGS, False)


def test_a_paused_driver_is_waited_for_though_the_one_in_its_place_stays() -> None:
    progress, exits = Idle(parse("")), list[tuple[int, int]]()
    drivers = {1: Staying("driver:1"), 2: Staying("driver:2")}

    def record(event: str, fields: Mapping[str, Any]) -> None:
        progress.note(event, fields)
        if event == "driver.exited":
            progress.idle_seconds = lambda: 0.0  # type: ignore[method-assign]
            drivers[1].code = 0
            exits.append((fields["incarnation"], fields["code"]))

    supervisor = Supervisor(drivers.__getitem__, lambda: True, lambda number: None, record, progress, deadline=5.0)
    supervisor._launch()
    supervisor.incarnations[0].replaced = True
    progress.note("query.ended", {"process": "driver:2"})
    assert supervisor.run() == JobOutcome(finished=True)
    assert exits == [(2, -9), (1, 0)]


@pytest.mark.parametrize(("code", "recorded"), [(0, 0), (1, 1), (None, -9)])
def test_the_exit_code_of_a_driver_that_ends_while_it_is_being_ended_is_its_own(
    code: int | None, recorded: int
) -> None:
    class Ending(Hanging):
        def kill(self) -> str:
            return self.process

        def alive(self) -> list[str]:
            return []

    exits, progress = list[Mapping[str, Any]](), TrialProgress(parse(""))

    def record(event: str, fields: Mapping[str, Any]) -> None:
        exits.extend([fields] if event == "driver.exited" else [])

    def start(number: int) -> Ending:
        return Ending("driver:1", code=code)

    supervisor = Supervisor(start, lambda: True, lambda number: None, record, progress, 5.0)
    supervisor._launch()
    supervisor.end()
    assert [one["code"] for one in exits] == [recorded]


@dataclass
class Mortal:
    """Drivers that are killed one after the other as soon as they run; the last one ends by itself."""

    kills: int
    started: list[float] = field(default_factory=list)
    dead: bool = False
    process: str = "local:1"

    def start(self, number: int) -> Mortal:
        self.started.append(time.monotonic())
        self.dead = number > self.kills
        return self

    def holds(self, process: str | None) -> bool:
        return not self.dead

    def wait(self, timeout: float) -> int | None:
        return (0 if len(self.started) > self.kills else -9) if self.dead else None

    def alive(self) -> list[str]:
        return [] if self.dead else [self.process]

    def kill(self) -> str:
        self.dead = True
        return "killed"

    def processor_seconds(self) -> float | None:
        return None

    terminate = pause = resume = kill


def test_a_restart_is_delayed_only_after_the_end_that_asked_for_it() -> None:
    drivers, progress = Mortal(kills=2), TrialProgress(parse(""))
    delays = [0.3, 0.0]

    def record(event: str, fields: Mapping[str, Any]) -> None:
        if event == "driver.started" and delays:
            threading.Timer(0.05, supervisor.kill, ("local:1", delays.pop(0))).start()

    supervisor = Supervisor(drivers.start, lambda: not delays, lambda number: None, record, progress, deadline=30.0)
    assert supervisor.run().finished
    assert drivers.started[1] - drivers.started[0] >= 0.3
    assert [one.restart_after for one in supervisor.incarnations] == [0.3, 0.0, 0.0]


def test_a_kill_that_falls_between_two_drivers_has_not_landed() -> None:
    drivers, progress = Mortal(kills=1), TrialProgress(parse(""))
    refused = list[str]()

    def record(event: str, fields: Mapping[str, Any]) -> None:
        if event == "driver.started" and len(drivers.started) == 1:
            threading.Timer(0.05, supervisor.kill, ("local:1", 0.6)).start()
        if event == "driver.exited" and len(drivers.started) == 1:
            threading.Timer(0.1, kill_again).start()

    def kill_again() -> None:
        with pytest.raises(EffectError) as error:
            supervisor.kill(None)
        refused.append(str(error.value))

    supervisor = Supervisor(drivers.start, lambda: True, lambda number: None, record, progress, deadline=30.0)
    assert supervisor.run().finished
    assert refused == ["no driver runs: local:1 has ended, and none has followed it yet"]
    assert [(one.planned, one.restart_after) for one in supervisor.incarnations] == [(True, 0.6), (False, 0.0)]


def test_what_a_driver_has_left_behind_is_no_driver_that_a_plan_kills() -> None:
    def left_behind() -> str:
        raise DeadAlready("the driver was not killed: process 1 is dead already")

    driver = Mortal(kills=0)
    driver.kill = left_behind  # type: ignore[method-assign]
    supervisor = Supervisor(
        driver.start, lambda: True, lambda number: None, lambda *event: None, TrialProgress(parse("")), deadline=30.0
    )
    supervisor.incarnations.append(Incarnation(1, driver))
    with pytest.raises(EffectError, match="dead already"):
        supervisor.kill("local:1", 5.0)
    assert (supervisor.incarnations[0].planned, supervisor.incarnations[0].restart_after) == (False, 0.0)
