"""Moments: kills at times instead of at steps, as others do it."""

from __future__ import annotations

from trials import Run, described, landed


def test_drivers_die_at_the_moments_of_a_plan_whatever_they_are_doing(trial: Run) -> None:
    """The clock begins with the first driver; drivers take some seconds to start, so that both moments meet one."""
    result = trial("postgres_upsert", "every(3s, times=2) -> kill(driver)")
    assert (result.verdict.outcome, result.verdict.guarantee) == ("pass", "exactly-once"), described(result)
    assert landed(result)
    begin = next(event["t"] for event in result.journal if event["event"] == "trial.armed")
    reached = [event["t"] - begin for event in result.journal if event["event"] == "fault.reached"]
    assert len(reached) == 2
    assert 3 <= reached[0] < 6 <= reached[1], "the second counts from the first driver's start as well"
    killed = [event for event in result.journal if event["event"] == "driver.exited"][:-1]
    assert [event["code"] for event in killed] == [-9, -9]


def test_a_moment_that_comes_after_the_job_has_ended_leaves_no_verdict(trial: Run) -> None:
    result = trial("postgres_upsert", "at(10m) -> kill(driver)")
    assert result.verdict.outcome == "inconclusive", described(result)
    assert [(fault.reached, fault.confirmed) for fault in result.verdict.faults] == [(False, False)]
