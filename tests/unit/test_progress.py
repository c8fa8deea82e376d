"""What the supervisor learns of a trial's progress."""

from __future__ import annotations

from concurrent.futures import Future

import pytest
from onceproof.faults import parse
from onceproof.harness.trial.progress import ALONE_SECONDS, TrialProgress

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


def test_a_driver_may_fail_by_itself_each_time_that_a_fault_comes_again() -> None:
    first, again = ("fault.fired", {"fault": 0, "number": 0}), ("fault.repeated", {"fault": 0, "number": 0})
    progress = progress_of(first, again, again, plan="file:before -> fail(error=ENOSPC, times=3)")
    assert progress.consequences() == 3


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
UNTIL = "txn.prepare:after -> pause(broker, longest=9s) until batch.commit:after"
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


STARTED = ("driver.started", {"incarnation": 1})
QUERY = ("point", {"phase": "query.start", "edge": "before", "process": "local:2"})
BEGUN = ("point", {"phase": "sink.write", "edge": "before", "batch": 0, "process": "local:2"})
WRITTEN = ("point", {"phase": "sink.write", "edge": "after", "batch": 0, "process": "local:2"})
ENDED = ("query.ended", {"process": "local:2"})
BESIDE = {
    "a request": ("point", {"phase": "request", "kind": "UPDATE", "process": "local:1"}),
    "a change of a file": ("point", {"phase": "file", "op": "rename", "process": "local:1"}),
    "what a broker does": ("point", {"phase": "log.append", "role": "broker", "process": "local:9"}),
    "a process of Python's": ("probe.hello", {"process": "local:3"}),
    "a connection": ("connection.opened", {"process": "local:1", "service": "kafka"}),
}


def still_for(*events: tuple[str, dict[str, object]], then: tuple[str, dict[str, object]]) -> float:
    """For how long a job has not moved if ``then`` is reported each second for 20 minutes after the events."""
    now = [0.0]
    progress = TrialProgress(parse(""), clock=lambda: now[0])
    for event, fields in events:
        progress.note(event, fields)
    for _ in range(1200):
        now[0] += 1
        progress.note(*then)
    return progress.idle_seconds()


@pytest.mark.parametrize("then", BESIDE)
def test_what_a_thread_reports_beside_its_query_is_no_progress(then: str) -> None:
    """A thread that says each second that it lives would keep a trial for ever."""
    assert still_for(STARTED, QUERY, then=BESIDE[then]) == 1200
    assert still_for(STARTED, QUERY, BEGUN, WRITTEN, then=BESIDE[then]) == 1200
    assert still_for(STARTED, QUERY, BEGUN, ENDED, then=BESIDE[then]) == 1200, "an error ended the query in its batch"


@pytest.mark.parametrize("then", BESIDE)
def test_it_is_progress_of_a_start_or_of_a_batch_but_not_for_ever(then: str) -> None:
    assert still_for(STARTED, then=BESIDE[then]) == 1200 - ALONE_SECONDS + 1
    assert still_for(STARTED, QUERY, BEGUN, then=BESIDE[then]) == 1200 - ALONE_SECONDS + 1


HELD = ("request", "log.append")


@pytest.mark.parametrize("phase", HELD)
def test_a_client_that_asks_again_whenever_the_plan_holds_its_request_makes_no_progress(phase: str) -> None:
    now = [0.0]
    progress = TrialProgress(parse(""), clock=lambda: now[0])
    for event, fields in (STARTED, QUERY, BEGUN):
        progress.note(event, fields)
    point = {"phase": phase, "process": "local:1", **({"role": "broker"} if phase == "log.append" else {})}
    for _ in range(100):
        now[0] += 5
        progress.note(*BESIDE["a connection"])
        progress.note("point", point)
        progress.note("hold", {"fault": 0, "process": "local:1", "point": point})
    assert progress.idle_seconds() == 495, "since the first connection"
    now[0] += 5
    progress.note(*BESIDE["a change of a file"])
    assert progress.idle_seconds() == 0, "of another thread"


def test_what_the_query_itself_does_is_always_progress() -> None:
    assert still_for(STARTED, QUERY, then=WRITTEN) == still_for(STARTED, QUERY, BEGUN, then=WRITTEN) == 0


def test_a_query_has_ended_until_its_driver_starts_one_again() -> None:
    progress = progress_of(STARTED, QUERY, BEGUN)
    assert set(progress.ended_queries()) == set()
    progress.note(*ENDED)
    assert set(progress.ended_queries()) == {"local:2"}
    progress.note(*QUERY)
    assert set(progress.ended_queries()) == set()
