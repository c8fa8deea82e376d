"""Moments: kills at times instead of at steps, as others do it."""

from __future__ import annotations

import pytest
from trials import Run, described, landed, long

HELD = "with hold(sink.write:before[batch=1])"
"""Drivers stand still there, so that the moment meets one in the midst of a batch."""


@pytest.mark.parametrize(
    ("plan", "moments"),
    [
        (f"at(20s) -> kill(driver) {HELD}", [20]),
        long(f"every(20s, times=2) -> kill(driver) {HELD}", [20, 40]),
    ],
)
def test_a_driver_dies_at_the_moments_of_a_plan(trial: Run, plan: str, moments: list[int]) -> None:
    result = trial("postgres_upsert", plan)
    assert (result.verdict.outcome, result.verdict.guarantee) == ("pass", "exactly-once"), described(result)
    assert landed(result)
    begin = next(event["t"] for event in result.journal if event["event"] == "trial.armed")
    reached = [event["t"] - begin for event in result.journal if event["event"] == "fault.reached"]
    assert len(reached) == len(moments)
    assert all(moment <= after < moment + 10 for moment, after in zip(moments, reached, strict=True)), reached
    killed = [event for event in result.journal if event["event"] == "driver.exited"][:-1]
    assert [event["code"] for event in killed] == [-9 for _ in moments]


@pytest.mark.long
@pytest.mark.parametrize("moment", ["at(1ms)", "at(10m)"])
def test_a_moment_at_which_no_query_runs_leaves_no_verdict(trial: Run, moment: str) -> None:
    result = trial("postgres_upsert", f"{moment} -> kill(driver)")
    assert result.verdict.outcome == "inconclusive", described(result)
