"""stop(driver): a driver that is told to end (SIGTERM) is replaced like one that died, however far it still gets."""

from __future__ import annotations

import pytest
from trials import Run, described, landed, long


@pytest.mark.parametrize("step", [long("sink.write:before"), "sink.write:after"])
def test_a_correct_sink_is_exactly_once_when_the_driver_is_told_to_end(trial: Run, step: str) -> None:
    result = trial("postgres_upsert", f"{step}[batch=1] -> stop(driver)")
    assert (result.verdict.outcome, result.verdict.guarantee) == ("pass", "exactly-once"), described(result)
    assert landed(result)
    first, last = (event for event in result.journal if event["event"] == "driver.exited")
    assert (first["planned"], last["code"]) == (True, 0)
    assert first["code"] != -9, "it ended by SIGTERM, or by itself"
