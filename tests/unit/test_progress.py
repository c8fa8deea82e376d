"""What the supervisor learns of a trial's progress."""

from __future__ import annotations

from concurrent.futures import Future

import pytest
from onceproof.faults import parse
from onceproof.harness.trial.progress import TrialProgress

LINK = {"target": "driver", "process": "driver:1", "peer": "broker2"}


def progress_of(*events: tuple[str, dict[str, object]], plan: str = "") -> TrialProgress:
    progress = TrialProgress(parse(plan))
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
    progress = progress_of(("fault.fired", {"fault": 0, "number": 0}), plan=f"task.run:before -> {action}")
    assert (progress.consequences(), progress.fired) == (1, True)


@pytest.mark.parametrize("action", ["kill(driver)", "kill(broker)", "pause(driver, for=2s)", "delay(2s)"])
def test_a_driver_that_fails_by_itself_is_not_excused_by(action: str) -> None:
    progress = progress_of(("fault.fired", {"fault": 0, "number": 0}), plan=f"task.run:before -> {action}")
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


KILL = "txn.prepare:after -> kill(broker)"
SERVER = "sink.write:before -> kill(redis)"
PAUSE = "txn.prepare:after -> pause(broker, for=2s)"
UNTIL = "txn.prepare:after -> pause(broker) until batch.commit:after"
FIRED = {"fault": 0, "number": 0}
AWAY = {
    "killed": (KILL, ("broker.registered", {"broker": 1})),
    "killed, and never back": (KILL, ("environment.failure", {"part": "broker 1", "broker": 1, "detail": "gone"})),
    "server killed": (SERVER, ("server.back", {"server": "redis"})),
    "server killed, and never back": (SERVER, ("environment.failure", {"part": "redis", "server": "redis"})),
    "not killed": (KILL, ("fault.failed", FIRED)),
    "paused": (PAUSE, ("fault.confirmed", FIRED)),
    "paused until": (UNTIL, ("resumed", {"fault": 0})),
}


@pytest.mark.parametrize("how", AWAY)
def test_each_death_while_the_plan_keeps_a_service_away_is_a_consequence(how: str) -> None:
    plan, (back, fields) = AWAY[how]
    progress = progress_of(("fault.fired", FIRED), ("driver.exited", {}), ("driver.exited", {}), plan=plan)
    expected = 3 if plan == SERVER else 2  # one that fails by its broken connection may do so once the server is back
    assert (progress.consequences(), progress.disturbed(), idle(progress)) == (expected, True, False)
    progress.note(back, fields)
    progress.note("driver.exited", {})
    assert (progress.consequences(), progress.disturbed(), idle(progress)) == (expected, False, True)


def test_one_of_two_killed_brokers_that_is_back_leaves_the_other_away() -> None:
    back = ("broker.registered", {"broker": 1})
    fired = [("fault.fired", FIRED), ("fault.fired", FIRED | {"fault": 1})]
    progress = progress_of(*fired, back, plan=f"{KILL}; {KILL}")
    assert progress.disturbed()
    progress.note(*back)
    assert not progress.disturbed()


def test_a_job_is_not_idle_while_its_input_is_written() -> None:
    progress, arranged = TrialProgress(parse("")), Future[None]()
    progress.wait_for_input(arranged)
    assert not idle(progress)
    arranged.set_result(None)
    assert idle(progress)
    assert progress.idle_seconds() < 1, "the time of waiting does not count"


def test_a_driver_starts_until_it_hands_over_a_batch() -> None:
    progress = progress_of(("driver.started", {}), ("point", {"phase": "query.start", "edge": "before"}))
    assert progress.starting()
    progress.note("point", {"phase": "sink.write", "edge": "before", "batch": 0})
    assert not progress.starting()
    progress.note("driver.started", {})
    assert progress.starting()


def test_the_newest_driver_commits_once_it_has_committed_itself() -> None:
    commit = ("point", {"phase": "batch.commit", "edge": "after", "batch": 0})
    assert progress_of(("driver.started", {}), commit).committing()
    assert not progress_of(("driver.started", {}), commit, ("driver.started", {})).committing()
