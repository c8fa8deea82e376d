"""The supervisor, with drivers on paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from onceproof.harness.environments.base import EffectError
from onceproof.harness.progress import TrialProgress
from onceproof.harness.supervisor import RESTARTS, Supervisor


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

    def kill(self) -> str:
        raise AssertionError("it is dead")

    pause = resume = kill


def deaths_until_given_up(healed_after: int, healing: str = "network.healed") -> int:
    """How many drivers are started, one after the other, if the network is cut from before the first one on until the
    ``healed_after``-th has started."""
    progress = TrialProgress()
    events = list[str]()
    link = {"process": "driver:1", "peer": "broker2"}

    def record(event: str, fields: Mapping[str, Any]) -> None:
        events.append(event)
        progress.note(event, fields)

    def start(number: int) -> Dying:
        if number == healed_after:
            record(healing, link)
        return Dying(f"driver:{number}")

    record("fault.fired", {"action": "partition(driver, peer=broker2, for=20s)"})
    record("network.cut", link)
    outcome = Supervisor(start, lambda: False, lambda number: "TimeoutException", record, progress, deadline=5.0).run()
    assert (outcome.finished, outcome.error) == (False, "TimeoutException")
    assert events[-1] == "driver.gave_up"
    return events.count("driver.exited")


def test_a_job_that_fails_while_its_network_is_cut_is_not_given_up_before_it_is_healed() -> None:
    assert deaths_until_given_up(healed_after=20) == 20 + RESTARTS


def test_a_network_that_cannot_be_healed_is_no_excuse_for_ever() -> None:
    assert deaths_until_given_up(healed_after=20, healing="environment.failure") == 20 + RESTARTS


def test_a_partition_excuses_one_death_also_after_its_healing() -> None:
    assert deaths_until_given_up(healed_after=1) == 1 + RESTARTS + 1


def test_a_moment_before_the_first_driver_has_nothing_to_act_on() -> None:
    job = HeldJob()
    supervisor = Supervisor(
        lambda number: job, lambda: True, lambda number: None, lambda *event: None, job, deadline=5.0
    )
    with pytest.raises(EffectError, match="no driver runs yet"):
        supervisor.kill(None)
