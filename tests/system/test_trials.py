"""The reference sinks under real kills at exact steps."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from onceproof.harness.session import Place, Request, Session
from onceproof.harness.sinks import find_sink
from trials import EVERY_SINK, TWO_PHASE, Run, landed, line_of, raises_on_replay, told

CORRECT = ["postgres_upsert", "postgres_ledger", "kafka_transactional"]


@pytest.mark.parametrize("step", EVERY_SINK)
@pytest.mark.parametrize("sink", CORRECT)
def test_a_correct_sink_is_exactly_once_when_the_driver_dies(trial: Run, sink: str, step: str) -> None:
    result = trial(sink, f"{step}[batch=1] -> kill(driver)")
    assert result.verdict.outcome == "pass", told(result)
    assert result.verdict.guarantee == "exactly-once"
    assert landed(result)


@pytest.mark.parametrize("step", TWO_PHASE)
def test_two_phase_commit_survives_the_driver_at_each_step(trial: Run, step: str) -> None:
    result = trial("kafka_transactional", f"{step}[batch=1] -> kill(driver)")
    assert result.verdict.outcome == "pass", told(result)
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


def test_one_transaction_committed_and_one_open_is_completed_by_the_replay(trial: Run) -> None:
    line = line_of("kafka_transactional", "coordinators.commit(transaction)")
    result = trial("kafka_transactional", f"line[kafka_transactional.py:{line}][batch=1]#2 -> kill(driver)")
    assert result.verdict.outcome == "pass", told(result)
    assert landed(result)


def test_a_coordinator_that_dies_with_a_prepared_commit_finishes_it(trial: Run) -> None:
    result = trial("kafka_transactional", "txn.prepare:after -> kill(broker)")
    assert result.verdict.outcome == "pass", told(result)
    assert landed(result)


def test_first_task_ended_and_no_other_begun_duplicates_one_partition_of_the_kafka_sink(trial: Run) -> None:
    plan = "task.run:after[batch=1]#1 -> kill(driver) with hold(task.run:before[batch=1]#2)"
    result = trial("kafka_append", plan)
    (duplicated,) = result.verdict.anomalies
    assert (duplicated.kind, len(duplicated.partitions)) == ("duplicated", 1)
    assert 0 < duplicated.count < result.verdict.records["batch_sizes"][1]


def test_a_sink_that_raises_on_every_replay_is_stuck(trial: Run, tmp_path: Path) -> None:
    sink = tmp_path / "raises_on_replay.py"
    sink.write_text(raises_on_replay())
    result = trial(sink, "sink.write:after[batch=1] -> kill(driver)")
    assert result.verdict.outcome == "fail"
    assert [anomaly.kind for anomaly in result.verdict.anomalies] == ["stuck"]
    assert "batch 1 was seen before" in str(result.verdict.anomalies[0])


BROKEN = {
    "postgres_insert": ("sink.write:after[batch=1] -> kill(driver)", None),
    "ledger_not_atomic": ("line[{here}][batch=1] -> kill(driver)", "cursor.execute(RECORD, batch)"),
    "commit_in_task": ("task.commit:after[batch=1] -> kill(driver)", None),
    "swallows_errors": ("line[{here}][batch=1] -> fail", "cursor.executemany("),
    "ledger_before_rows": ("line[{here}][batch=1] -> kill(driver)", "cursor.executemany("),
}
"""The fault under which each broken sink breaks, and what stands on the line that it names."""


@pytest.mark.parametrize("sink", BROKEN)
def test_a_broken_sink_fails_with_the_anomaly_that_its_file_says(trial: Run, sink: str) -> None:
    plan, text = BROKEN[sink]
    here = f"{sink}.py:{line_of(sink, text)}" if text else ""
    result = trial(sink, plan.format(here=here))
    assert result.verdict.outcome == "fail", told(result)
    assert tuple(anomaly.kind for anomaly in result.verdict.anomalies) == flaw_of(sink)


@pytest.mark.parametrize("sink", BROKEN)
def test_a_broken_sink_is_right_when_nothing_fails(trial: Run, sink: str) -> None:
    assert trial(sink).verdict.outcome == "pass"


def test_an_executor_that_dies_before_its_pre_commit_is_replaced_by_a_second_attempt(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    place = Place(master="standalone", runs=tmp_path_factory.mktemp("runs"))
    with Session(place) as session:
        plan = "task.commit:before[batch=1] -> kill(executor)"
        result = session.trial(Request("kafka_transactional", plan))
    assert result.verdict.outcome == "pass", told(result)
    assert landed(result)
    attempts = [event for event in result.journal if event.get("phase") == "task.run" and event.get("attempt") == 1]
    assert attempts
    assert not any("hanging" in str(event.get("hanging") or "") for event in result.journal)


def flaw_of(sink: str) -> tuple[str, ...]:
    tree = ast.parse(find_sink(sink).read_text())
    (value,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "FLAW"
    ]
    return tuple(ast.literal_eval(value))
