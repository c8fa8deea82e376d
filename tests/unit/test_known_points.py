"""The library of known failures, as points."""

from __future__ import annotations

from onceproof.harness.certification.points import Question
from onceproof.harness.certification.space import space_of


def test_what_other_jobs_would_feel_has_the_environment_to_itself() -> None:
    trace = [{"event": "point", "phase": "sink.write", "edge": "before", "batch": 1, "run": "r"}]
    found = space_of(Question(trace, {"middle": 1}, lambda plan: None, known_failures=True)).points
    alone = {point.step.removeprefix("plan ") for point in found if point.exclusive}
    named = {point.step.removeprefix("plan ") for point in found if point.step.startswith("plan ")}
    assert {"coordinator_lost", "leader_lost", "server_crash", "shared_ids", "unclean_election"} <= alone
    assert {"replayed_batch", "zombie_driver", "lost_commit_log", "crash_loop"} <= named - alone
