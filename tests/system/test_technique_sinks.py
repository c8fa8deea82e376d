"""Each technique of a sink at its most delicate step, and the flaws that are common in it."""

from __future__ import annotations

import re

import pytest
from trials import Run, described, flaw_of, landed, line_of

ONE_TASK_ENDED = "task.run:after[batch=1]#1 -> kill(driver) with hold(task.run:before[batch=1]#2)"

DELICATE = {
    "postgres_prepared": 'line[{SQL("COMMIT PREPARED}][batch=1]#2 -> kill(driver)',
    "postgres_masked": "line[{connection.execute(SHOW}][batch=1] -> kill(driver)",
    "kafka_marker": "line[{producer.commit_transaction()}][batch=1] -> kill(driver)",
    "kafka_compacted": "sink.commit:after[batch=1] -> kill(driver)",
    "file_rename": "line[{os.replace(pending, final)}][batch=1]#2 -> kill(driver)",
    "file_manifest": ONE_TASK_ENDED,
}
"""Exactly-once sinks: where most is done and nothing is settled. {text} is the line that has the text."""


def plan_of(sink: str, plan: str) -> str:
    return re.sub(r"\{(.*?)\}", lambda text: f"{sink}.py:{line_of(sink, text[1])}", plan)


@pytest.mark.long
@pytest.mark.parametrize("sink", DELICATE)
def test_a_technique_holds_where_its_driver_dies_at_the_most_delicate_step(trial: Run, sink: str) -> None:
    result = trial(sink, plan_of(sink, DELICATE[sink]))
    assert (result.verdict.outcome, result.verdict.guarantee) == ("pass", "exactly-once"), described(result)
    assert landed(result)


@pytest.mark.long
def test_a_manifest_that_is_compacted_in_the_replayed_batch_names_each_file_once(trial: Run) -> None:
    result = trial("file_manifest", "sink.write:after[batch=2] -> kill(driver)")
    assert result.verdict.outcome == "pass", described(result)
    assert landed(result)


WINDOWS = {
    ("postgres_append", "sink.write:after[batch=1] -> kill(driver)"): ["duplicated"],
    ("jdbc_append", "task.run:after[batch=1]#1 -> fail"): ["duplicated"],
    ("jdbc_append", "task.run:before[batch=1]#1 -> fail"): [],
    ("wal_committer", "line[{send(target, json.loads}][batch=1] -> kill(driver)"): [],
    ("wal_committer", "line[{publish(record,}][batch=1] -> kill(driver)"): ["duplicated"],
    ("wal_committer", "sink.write:after[batch=1] -> kill(driver)"): [],
    ("file_bare", ONE_TASK_ENDED): ["duplicated"],
    ("file_bare", "sink.write:after[batch=1] -> kill(driver)"): [],
}
"""At-least-once sinks: what a death inside of their window for duplicates shows, and one outside of it does not."""


@pytest.mark.long
@pytest.mark.parametrize(("sink", "plan"), WINDOWS)
def test_an_at_least_once_sink_duplicates_in_the_window_that_its_file_names_and_in_no_other(
    trial: Run, sink: str, plan: str
) -> None:
    result = trial(sink, plan_of(sink, plan))
    assert result.verdict.outcome == "pass", described(result)
    assert [anomaly.kind for anomaly in result.verdict.anomalies] == WINDOWS[sink, plan]
    assert landed(result)


BROKEN = {
    "prepared_rolled_back": 'line[{"COMMIT", decided}][batch=1]#2 -> kill(driver)',
    "prepared_under_new_names": 'line[{"COMMIT", self.gid}][batch=1]#2 -> kill(driver)',
    "aborts_and_sends_again": "request:before[service=kafka, kind=Produce, batch=0]#1 "
    "-> delay(longest=1m) until request:before[service=kafka, kind=Produce, batch=0]#1",
    "ignores_delivery_errors": "request:before[service=kafka, kind=Produce, batch=1]#1 -> answer(UNKNOWN_SERVER_ERROR)",
    "reads_for_two_seconds": "batch.commit:before[batch=1] -> kill(driver); "
    "sink.write:before[batch=1]#2 -> latency(1s, for=25s)",
    "counts_empty_tasks": 'request:before[service=postgres, kind="COMMIT PREPARED", batch=2]#1 -> kill(driver)',
    "masked_keeps_leftovers": "line[{cursor.execute(SHOW, }][batch=1] -> kill(driver)",
    "masked_collects_shown": "sink.write:after[batch=1] -> kill(driver)",
    "marker_of_an_aborted": "line[{producer.commit_transaction()}][batch=1] -> kill(driver)",
    "fenced_taken_for_committed": "line[{committed=True}][batch=1]#2 -> kill(driver)",
    "transactions_time_out": "request:before[service=kafka, kind=EndTxn, batch=1]#1 "
    "-> kill(driver) then restart(driver, after=75s)",
    "keeps_its_producer": "request:before[service=kafka, kind=EndTxn, batch=1]#1 "
    "-> delay(longest=1m) until request:after[service=kafka, kind=Produce, batch=2]#1; "
    "request:before[service=kafka, kind=EndTxn, batch=2]#1 -> kill(driver)",
    "recorded_before_sent": "line[{send(target, json.loads}][batch=1] -> kill(driver)",
    "moved_by_tasks": "sink.commit:before[batch=1] -> kill(driver)",
    "promotes_what_it_finds": "sink.commit:before[batch=1] -> kill(driver)",
    "manifest_ignored": ONE_TASK_ENDED,
    "sums_up_the_directory": 'set batches = 12; file:before[op=link, path="target/*", batch=8]#1 -> kill(driver)',
    "attached_databases": 'file:before[op=sync, path="target/events.db-wal", batch=1]#1 -> kill(driver)',
    "redoes_unfinished_batches": "request:after[service=postgres, kind=INSERT, batch=1]#1 -> kill(driver); "
    "batch.commit:before[batch=1] -> kill(driver)",
}
"""The fault under which each broken sink breaks."""


@pytest.mark.long
@pytest.mark.parametrize("sink", BROKEN)
def test_a_flaw_of_a_technique_shows_the_anomalies_that_its_file_says(trial: Run, sink: str) -> None:
    result = trial(sink, plan_of(sink, BROKEN[sink]))
    assert result.verdict.outcome == "fail", described(result)
    assert tuple(anomaly.kind for anomaly in result.verdict.anomalies) == flaw_of(sink)


@pytest.mark.long
@pytest.mark.parametrize("sink", BROKEN)
def test_a_sink_with_a_flaw_is_right_when_nothing_fails(trial: Run, sink: str) -> None:
    assert trial(sink).verdict.outcome == "pass"
