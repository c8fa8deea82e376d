"""The reference sinks under real kills at exact steps."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from onceproof.harness.spec import TrialResult

Run = Callable[..., TrialResult]

EVERY_SINK = [
    "batch.offsets:after",
    "sink.write:before",
    "sink.write:after",
    "batch.commit:before",
    "batch.commit:after",
]
TWO_PHASE = ["task.commit:before", "task.commit:after", "sink.commit:before", "sink.commit:after"]
CORRECT = ["postgres_upsert", "postgres_ledger", "kafka_transactional"]


def landed(result: TrialResult) -> bool:
    return all(fault.confirmed and fault.replay.get("seen") for fault in result.verdict.faults)


@pytest.mark.parametrize("step", EVERY_SINK)
@pytest.mark.parametrize("sink", CORRECT)
def test_a_correct_sink_is_exactly_once_when_the_driver_dies(trial: Run, sink: str, step: str) -> None:
    result = trial(sink, f"{step}[batch=1] -> kill(driver)")
    assert result.verdict.outcome == "pass", result.verdict
    assert result.verdict.guarantee == "exactly-once"
    assert landed(result)


@pytest.mark.parametrize("step", TWO_PHASE)
def test_two_phase_commit_survives_the_driver_at_each_step(trial: Run, step: str) -> None:
    result = trial("kafka_transactional", f"{step}[batch=1] -> kill(driver)")
    assert result.verdict.outcome == "pass", result.verdict
    assert landed(result)


def test_the_kafka_sink_duplicates_the_rows_of_a_replayed_batch(trial: Run) -> None:
    result = trial("kafka_append", "sink.commit:after[batch=1] -> kill(driver)", claim="exactly-once")
    assert result.verdict.outcome == "fail"
    assert result.verdict.guarantee == "at-least-once"
    (duplicated,) = result.verdict.anomalies
    assert (duplicated.kind, list(duplicated.batches)) == ("duplicated", [1])
    assert duplicated.count == result.verdict.records["batch_sizes"][1]
    assert any("replay by the restarted driver" in cause for cause in duplicated.causes)


def test_the_kafka_sink_keeps_its_own_claim(trial: Run) -> None:
    result = trial("kafka_append", "sink.commit:after[batch=1] -> kill(driver)")
    assert (result.verdict.outcome, result.verdict.exactly_once) == ("pass", "fail")


def test_a_fault_that_is_never_reached_is_inconclusive(trial: Run) -> None:
    result = trial("postgres_upsert", "sink.write:after[batch=999] -> kill(driver)")
    assert result.verdict.outcome == "inconclusive"
    assert "sink.write:after[batch=999]" in result.verdict.reason
    assert result.verdict.guarantee is None


def test_a_run_without_a_fault_passes_and_says_so(trial: Run) -> None:
    result = trial("postgres_upsert")
    assert result.verdict.outcome == "pass"
    assert "no fault was planned" in result.verdict.reason
