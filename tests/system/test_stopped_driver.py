"""stop(driver): a driver that is told to end (SIGTERM) is replaced like one that died, however far it still gets."""

from __future__ import annotations

from pathlib import Path

import pytest
from onceproof.harness.sinks import find_sink
from trials import Run, described, landed, long


@pytest.mark.parametrize("step", [long("sink.write:before"), "sink.write:after"])
def test_a_correct_sink_is_exactly_once_when_the_driver_is_told_to_end(trial: Run, step: str) -> None:
    result = trial("postgres_upsert", f"{step}[batch=1] -> stop(driver)")
    assert (result.verdict.outcome, result.verdict.guarantee) == ("pass", "exactly-once"), described(result)
    assert landed(result)
    first, last = (event for event in result.journal if event["event"] == "driver.exited")
    assert (first["planned"], last["code"]) == (True, 0)
    assert first["code"] != -9, "it ended by SIGTERM, or by itself"


@pytest.mark.long
def test_a_driver_that_does_not_listen_is_killed(trial: Run, tmp_path: Path) -> None:
    sink = tmp_path / "does_not_listen.py"
    ignoring = "\nimport signal\n\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    sink.write_text(find_sink("postgres_upsert").read_text() + ignoring)
    kept = "batch.commit:before[batch=1] -> delay until sink.write:before[batch=2]"
    result = trial(sink, f"sink.write:after[batch=1] -> stop(driver); {kept}")
    assert (result.verdict.outcome, result.verdict.guarantee) == ("pass", "exactly-once"), described(result)
    assert landed(result)
    first, last = (event for event in result.journal if event["event"] == "driver.exited")
    assert (first["planned"], first["code"], last["code"]) == (True, -9, 0)
