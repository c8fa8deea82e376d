"""What the supervisor is told of a trial's progress."""

from __future__ import annotations

import pytest
from onceproof.harness.progress import TrialProgress

LINK = {"target": "driver", "process": "driver:1", "peer": "broker2"}


def progress_of(*events: tuple[str, dict[str, object]]) -> TrialProgress:
    progress = TrialProgress()
    for event, fields in events:
        progress.note(event, fields)
    return progress


def idle(progress: TrialProgress) -> bool:
    """Whether the time in which nothing moves is counted."""
    return any(progress.idle_seconds() > 0 for _ in range(1000))


@pytest.mark.parametrize(
    "action",
    [
        "fail",
        "fail(error=OSError)",
        "kill(worker)",
        "kill(executor)",
        "partition(driver, for=2s)",
        "partition(executor, peer=broker1, for=2s)",
        "partition(broker, for=2s)",
    ],
)
def test_a_driver_may_fail_by_itself_after(action: str) -> None:
    progress = progress_of(("fault.fired", {"action": action}))
    assert (progress.consequences(), progress.fired) == (1, True)


@pytest.mark.parametrize("action", ["kill(driver)", "kill(broker)", "pause(driver, for=2s)", "delay(2s)"])
def test_a_driver_that_fails_by_itself_is_not_excused_by(action: str) -> None:
    progress = progress_of(("fault.fired", {"action": action}))
    assert (progress.consequences(), progress.fired) == (0, True)


def test_each_death_while_the_network_is_cut_is_a_consequence() -> None:
    progress = progress_of(("network.cut", LINK), ("driver.exited", {}), ("driver.exited", {}))
    assert progress.consequences() == 2
    progress.note("network.healed", LINK | {"peer": "broker3"})
    progress.note("driver.exited", {})
    assert progress.consequences() == 3, "another link was healed"
    progress.note("network.healed", LINK)
    progress.note("driver.exited", {})
    assert progress.consequences() == 3


def test_a_job_is_not_idle_while_the_plan_keeps_its_network_cut() -> None:
    progress = progress_of(("network.cut", LINK))
    assert not idle(progress)
    progress.note("network.healed", LINK)
    assert idle(progress)


def test_a_network_that_cannot_be_healed_does_not_keep_the_trial_for_ever() -> None:
    progress = progress_of(("network.cut", LINK), ("environment.failure", {"part": "broker 1", "detail": "gone"}))
    assert not idle(progress), "the broker is no part of the network"
    progress.note("environment.failure", LINK | {"part": "network", "detail": "gone"})
    assert idle(progress)
