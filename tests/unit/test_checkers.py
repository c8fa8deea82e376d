"""Each checker finds what it is for, counts it exactly, and says where it lies and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onceproof.assertions import Anomaly, Evidence, Expectation, Glimpse, Open
from onceproof.assertions.checkers import checkers, find_anomalies
from onceproof.assertions.journal import disturbances
from paper_trial import (
    LANDED,
    WORKLOAD,
    Paper,
    changed,
    everything_and,
    everything_but,
    evidence,
    fault,
    ground_truth,
    healthy,
    ids_of,
    killed_in_batch_1,
    rows_with,
    stored_input,
    unknown_rows,
)

BATCH_0, BATCH_1 = ids_of(0), ids_of(1)


def found(of: Evidence) -> dict[str, Anomaly]:
    rows = of.readings[-1].rows
    return {anomaly.kind: anomaly for anomaly in find_anomalies(of.truth, rows, of)}


def only(of: Evidence, kind: str) -> Anomaly:
    anomalies = found(of)
    assert list(anomalies) == [kind]
    return anomalies[kind]


def test_every_kind_has_a_checker() -> None:
    assert set(checkers()) == {
        *("corrupted", "duplicated", "hanging", "lost", "phantom", "stale", "stuck", "torn", "unreadable", "withdrawn")
    }
    assert all(checker.__doc__ for checker in checkers().values())


def test_nothing_is_found_where_all_is_right() -> None:
    assert found(evidence()) == {}


# --- lost ---


def test_rows_that_never_arrive_are_lost() -> None:
    anomaly = only(evidence(everything_but(BATCH_1[:3])), "lost")
    assert (anomaly.count, anomaly.batches) == (3, [1])
    bounds = WORKLOAD.batch_bounds()[1]
    for record in anomaly.records:
        assert record["id"] in BATCH_1[:3]
        assert bounds[record["partition"]][0] <= record["offset"] < bounds[record["partition"]][1]
        assert record["expected"]["event_time"].endswith("Z")


def test_no_row_is_lost_while_input_is_not_committed() -> None:
    assert found(evidence(everything_but(BATCH_1), input_committed=False)) == {}


def test_lost_rows_of_a_swallowed_error_name_the_error() -> None:
    plan = fault("line[sink.py:9][batch=1] -> fail")
    paper = Paper().start().batches(1, 0).hand_over(1, 1).point("line", None, 1, 1, file="sink.py", line=9)
    paper.reached_last().fired("fail").finish(1, 1).batches(1, 2, 3, 4).exited()
    anomaly = only(evidence(everything_but(BATCH_1), paper, plan), "lost")
    assert anomaly.causes == [
        "batch 1 was handed to the sink once (driver local:1); fail at line[sink.py:9][batch=1] fell into it; "
        f"the engine recorded it as done; {len(BATCH_1)} of its rows are missing (handed to driver local:1)"
    ]


def test_lost_rows_of_a_batch_that_was_recorded_before_the_kill_name_the_kill() -> None:
    paper = Paper().start().batches(1, 0, 1).killed_here().exited(1, -9, planned=True)
    paper.start(2).batches(2, 2, 3, 4).exited(2)
    plan = fault("batch.commit:after[batch=1] -> kill(driver)")
    anomaly = only(evidence(everything_but(BATCH_1), paper, plan), "lost")
    assert anomaly.causes == [
        "batch 1 was handed to the sink once (driver local:1); the engine recorded it as done, before kill(driver) "
        f"at batch.commit:after[batch=1]; {len(BATCH_1)} of its rows are missing (handed to driver local:1)"
    ]


def test_lost_rows_of_a_replayed_batch_name_all_candidates() -> None:
    [cause] = only(evidence(everything_but(BATCH_1), killed_in_batch_1(), LANDED), "lost").causes
    assert cause.endswith("(handed to one of: driver local:1, driver local:2)")


def test_all_rows_lost_are_counted_and_the_first_ten_shown() -> None:
    anomaly = only(evidence(ground_truth().slice(0, 0)), "lost")
    assert anomaly.count == len(ground_truth())
    assert len(anomaly.records) == 10
    assert anomaly.batches == [0, 1, 2, 3, 4]


# --- duplicated ---


def test_rows_of_a_replayed_batch_are_duplicated_by_the_restarted_driver() -> None:
    anomaly = only(evidence(everything_and(BATCH_1), killed_in_batch_1(), LANDED), "duplicated")
    assert (anomaly.count, anomaly.batches) == (len(BATCH_1), [1])
    assert anomaly.causes == [
        "batch 1 was handed to the sink twice (driver local:1, then driver local:2 after kill(driver) at "
        "sink.commit:after[batch=1]): replay by the restarted driver"
    ]
    assert {record["written_by"] for record in anomaly.records} == {"one of: driver local:1, driver local:2"}
    assert {(record["expected"], record["seen"]) for record in anomaly.records} == {(1, 2)}


def test_rows_of_a_paused_driver_and_of_the_one_in_its_place_are_no_replay_after_a_restart() -> None:
    action = "pause(driver) until batch.commit:after[batch=1]"
    paper = Paper().start().batches(1, 0).hand_over(1, 1).reached_last()
    paper.fired(action, confirmed=False)
    paper.start(2).batches(2, 1).confirmed(action).point("sink.write", "after", 1, 1).batches(2, 2, 3, 4).exited(2)
    plan = fault(f"sink.write:before[batch=1] -> {action}")
    [cause] = only(evidence(everything_and(BATCH_1), paper, plan), "duplicated").causes
    assert cause.endswith(": replay by the driver that took the paused one's place, and the paused one went on later")


BATCHES_0_AND_1 = rows_with([*BATCH_0, *BATCH_1])
WENT_ON = " driver local:1, which had been taken for dead, went on"


@pytest.mark.parametrize(
    ("kind", "end", "read", "cause"),
    [
        ("duplicated", everything_and(BATCH_1), BATCHES_0_AND_1, f"{len(BATCH_1)} of these copies came once"),
        ("duplicated", everything_and(BATCH_1), rows_with([*BATCH_0, *BATCH_1, *BATCH_1]), None),
        ("lost", everything_but(BATCH_1[:2]), BATCHES_0_AND_1, "2 of them were there until"),
        ("lost", everything_but(BATCH_1[:2]), rows_with([*BATCH_0, *BATCH_1[1:]]), "1 of them were there until"),
    ],
    ids=["its copies", "those of the other one", "what it took away", "a part of that"],
)
def test_what_a_driver_that_was_taken_for_dead_did_is_told_by_the_reading_before_it_went_on(
    kind: str, end: pa.Table, read: pa.Table, cause: str | None
) -> None:
    action = "pause(driver) until batch.commit:after[batch=1]"
    paper = Paper().start().batches(1, 0).hand_over(1, 1).reached_last()
    paper.fired(action, confirmed=False)
    paper.start(2).batches(2, 1).add("reading", watch=1)
    glimpse = Glimpse(1, len(paper.journal) - 1, 1, 1, read, at="batch.commit:after[batch=1]")
    paper.add("resumed", fault=0, process="local:1", reached=True).confirmed(action)
    paper.point("sink.write", "after", 1, 1).batches(2, 2, 3, 4).exited(2)
    plan = fault(f"sink.write:before[batch=1] -> {action}")
    [told] = found(replace(evidence(end, paper, plan), glimpses=(glimpse,)))[kind].causes
    assert told.endswith(f"{cause}{WENT_ON}") if cause else WENT_ON not in told


def test_every_superfluous_copy_counts() -> None:
    anomaly = only(evidence(everything_and([BATCH_1[0]] * 3)), "duplicated")
    assert (anomaly.count, anomaly.records[0]["seen"]) == (3, 4)


def test_duplicates_without_a_replay_are_the_sinks_own() -> None:
    anomaly = only(evidence(everything_and(BATCH_1[:1])), "duplicated")
    assert anomaly.causes == [
        "batch 1 was handed to the sink once (driver local:1), and no attempt of a task was seen twice: "
        "the sink itself wrote these rows more than once"
    ]
    assert anomaly.records[0]["written_by"] == "driver local:1"


def test_duplicates_of_a_swallowed_error_name_the_error() -> None:
    plan = fault("line[sink.py:9][batch=1] -> fail")
    paper = Paper().start().batches(1, 0).hand_over(1, 1).point("line", None, 1, 1, file="sink.py", line=9)
    paper.reached_last().fired("fail").finish(1, 1).batches(1, 2, 3, 4).exited()
    anomaly = only(evidence(everything_and(BATCH_1), paper, plan), "duplicated")
    assert anomaly.causes == [
        "batch 1 was handed to the sink once (driver local:1); fail at line[sink.py:9][batch=1] fell into it, and no "
        "attempt of a task was seen twice: the sink itself wrote these rows more than once"
    ]


def test_duplicates_of_a_repeated_task_name_its_attempts() -> None:
    plan = fault("task.commit:before[batch=1, partition=0] -> kill(executor)")
    paper = Paper().start().batches(1, 0).hand_over(1, 1).task(1, 1, 0, "local:7").killed_here("kill(executor)")
    paper.task(1, 1, 1, "local:8").finish(1, 1).batches(1, 2, 3, 4).exited()
    anomaly = only(evidence(everything_and(BATCH_1[:2]), paper, plan), "duplicated")
    assert anomaly.causes == [
        "batch 1 was handed to the sink once (driver local:1), but task 0 of batch 1 ran twice (attempts 0, 1 in "
        "local:7, then local:8 after kill(executor) at task.commit:before[batch=1, partition=0]): "
        "rows of several attempts are visible"
    ]
    assert anomaly.records[0]["written_by"] == "one of: attempt 0 in local:7, attempt 1 in local:8"


def test_an_attempt_that_its_executor_and_its_python_report_is_one() -> None:
    plan = fault("request:before[batch=1, attempt=0] -> pause(executor) until task.run:after[batch=1, attempt=1]")
    paper = Paper().start().batches(1, 0).hand_over(1, 1)
    for attempt, executor, python in ((0, "local:7", "local:70"), (1, "local:8", "local:80")):
        of_task = {"partition": 0, "stage": 1, "attempt": attempt, "task": 4 + attempt}
        paper.point("task.run", "before", 1, 1, process=executor, role="executor", **of_task)
        paper.point("request", "before", 1, 1, process=python, role="python-client", **of_task)
    paper.finish(1, 1).batches(1, 2, 3, 4).exited()
    anomaly = only(evidence(everything_and(BATCH_1[:2]), paper, plan), "duplicated")
    assert "task 0 of batch 1 ran twice (attempts 0, 1 in local:7, then local:8" in anomaly.causes[0]


def test_a_task_of_a_replay_is_no_second_attempt() -> None:
    paper = Paper().start().hand_over(1, 1).task(1, 1).killed_here().start(2).hand_over(2, 1).task(2, 1).finish(2, 1)
    [cause] = only(evidence(everything_and(BATCH_1[:1]), paper, LANDED), "duplicated").causes
    assert "task 0" not in cause


def test_a_new_run_in_the_same_driver_is_not_called_a_restarted_driver() -> None:
    paper = Paper().start().hand_over(1, 1).point("sink.write", "before", 2, 1, process="local:1").finish(2, 1)
    [cause] = only(evidence(everything_and(BATCH_1[:1]), paper), "duplicated").causes
    assert cause == (
        "batch 1 was handed to the sink twice (driver local:1 run r1, then driver local:1 run r2): "
        "replay by a new run in the same driver"
    )


def test_an_unplanned_end_of_the_driver_is_named() -> None:
    paper = Paper().start().hand_over(1, 1).exited(1, 1, error="ValueError: no").start(2).hand_over(2, 1).finish(2, 1)
    [cause] = only(evidence(everything_and(BATCH_1[:1]), paper), "duplicated").causes
    assert "after the driver's own end with code 1 (ValueError: no)" in cause


def test_causes_of_many_batches_are_cut_short() -> None:
    every = [row["id"] for row in ground_truth().to_pylist()]
    of = evidence(everything_and(every), Paper())
    assert len(found(of)["duplicated"].causes) == 5
    assert found(of)["duplicated"].causes[0].startswith("batch 0 was never handed to the sink")


# --- phantom ---


def test_a_row_of_an_aborted_transaction_is_a_phantom() -> None:
    aborted = ids_of(2, committed=False)[0]
    anomaly = only(evidence(pa.concat_tables([ground_truth(), unknown_rows([{"id": aborted}])])), "phantom")
    assert (anomaly.count, anomaly.batches) == (1, [2])
    assert anomaly.records[0]["aborted"] is True
    assert "reads uncommitted data" in anomaly.causes[0]


def test_an_id_that_was_never_written_is_a_phantom() -> None:
    anomaly = only(evidence(pa.concat_tables([ground_truth(), unknown_rows([{"id": -1}, {"id": 10**12}])])), "phantom")
    assert (anomaly.count, anomaly.batches) == (2, [])
    assert anomaly.causes == ["2 rows have an id that was never written to the source"]


def test_a_row_without_id_is_a_phantom() -> None:
    anomaly = only(evidence(pa.concat_tables([ground_truth(), unknown_rows([{"payload": "not JSON"}])])), "phantom")
    assert anomaly.records[0]["seen"]["payload"] == "not JSON"
    assert anomaly.causes == ["1 rows have no id that can be read: they are no rows under test, or not decodable"]


# --- corrupted ---


@pytest.mark.parametrize(
    "change",
    [{"value": 0.0625}, {"key": None}, {"payload": "cut"}, {"event_time": None}],
    ids=lambda change: next(iter(change)),
)
def test_a_known_row_with_another_value_is_corrupted(change: dict[str, Any]) -> None:
    anomaly = only(evidence(changed(BATCH_1[:1], **change)), "corrupted")
    [record] = anomaly.records
    assert (anomaly.count, anomaly.batches) == (1, [1])
    assert record["seen"] == change
    assert list(record["expected"]) == list(change)
    assert anomaly.causes == [
        f"batch 1 was handed to the sink once (driver local:1); other than written: {next(iter(change))} in 1 rows; "
        "written by driver local:1"
    ]


def test_two_rows_of_an_id_that_differ_are_corrupted_and_not_duplicated() -> None:
    wrong = changed(BATCH_1[:1], value=0.0625).filter(pa.compute.equal(ground_truth()["id"], BATCH_1[0]))
    assert only(evidence(pa.concat_tables([ground_truth(), wrong])), "corrupted").count == 1


# --- stale: a sink that keeps one row of each key ---

LATEST = Expectation("SELECT * FROM input", latest=("key",))
GREATEST = Expectation("SELECT * FROM input", latest=("key",), order="event_time")


def kept(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=ground_truth().schema)


def older_than(right: Mapping[str, Any]) -> dict[str, Any]:
    """Another event of its key, from the input; it arrived before, since the right one arrived last."""
    return next(row for row in ground_truth().to_pylist() if row["key"] == right["key"] and row != right)


EVENTS = Counter(row["key"] for row in ground_truth().to_pylist())
RIGHT = sorted(ground_truth(LATEST).to_pylist(), key=lambda row: (EVENTS[row["key"]] == 1, row["key"]))
"""The last arrivals, those first whose key has other events."""


def test_nothing_is_found_where_the_last_arrival_of_each_key_is_kept() -> None:
    assert found(evidence(expectation=LATEST)) == {}
    assert found(evidence(expectation=GREATEST)) == {}


def test_an_older_row_in_the_place_of_the_last_arrival_is_stale() -> None:
    older = older_than(RIGHT[0])
    anomaly = only(evidence(kept([older, *RIGHT[1:]]), expectation=LATEST), "stale")
    [record] = anomaly.records
    assert (anomaly.count, record["id"], record["expected"]["id"]) == (1, older["id"], RIGHT[0]["id"])
    batch = next(row["batch"] for row in stored_input().to_pylist() if row["id"] == older["id"])
    assert (anomaly.batches, record["batch"]) == ([batch], batch)
    assert anomaly.causes == [
        f"batch {batch} was handed to the sink once (driver local:1); 1 of its rows stand where another row of their "
        "key arrived later (written by driver local:1)"
    ]


def test_an_older_row_next_to_the_last_arrival_is_stale() -> None:
    assert only(evidence(kept([older_than(RIGHT[0]), *RIGHT]), expectation=LATEST), "stale").count == 1


def test_no_row_is_stale_while_input_is_not_committed() -> None:
    assert found(evidence(kept([older_than(RIGHT[0])]), expectation=LATEST, input_committed=False)) == {}


def test_a_key_without_a_row_is_lost_and_one_with_two_right_ones_is_duplicated() -> None:
    anomaly = only(evidence(kept(RIGHT[1:]), expectation=LATEST), "lost")
    assert (anomaly.count, anomaly.records[0]["id"]) == (1, RIGHT[0]["id"])
    anomaly = only(evidence(kept([RIGHT[0], *RIGHT]), expectation=LATEST), "duplicated")
    assert (anomaly.count, anomaly.records[0]["id"]) == (1, RIGHT[0]["id"])


def test_a_row_of_a_key_that_is_no_version_of_it_is_corrupted() -> None:
    mixed = RIGHT[0] | {"value": 0.0625}
    anomaly = only(evidence(kept([mixed, *RIGHT[1:]]), expectation=LATEST), "corrupted")
    assert anomaly.records[0]["seen"] == {"value": 0.0625}


def test_a_row_of_an_aborted_transaction_is_a_phantom_though_its_key_is_known() -> None:
    aborted = RIGHT[0] | {"id": ids_of(2, committed=False)[0]}
    anomalies = found(evidence(kept([aborted, *RIGHT[1:]]), expectation=LATEST))
    assert {kind: anomaly.count for kind, anomaly in anomalies.items()} == {"phantom": 1}
    assert anomalies["phantom"].records[0]["aborted"] is True


def test_among_equals_in_the_order_any_is_right_and_two_of_them_are_duplicated() -> None:
    greatest = ground_truth(GREATEST).to_pylist()
    at = {(row["key"], row["event_time"]): row for row in greatest}
    others = [
        row for row in ground_truth().to_pylist() if (row["key"], row["event_time"]) in at and row not in greatest
    ]
    assert others
    one = others[0]
    rest = [row for row in greatest if row["key"] != one["key"]]
    assert found(evidence(kept([one, *rest]), expectation=GREATEST)) == {}
    assert only(evidence(kept([one, *greatest]), expectation=GREATEST), "duplicated").count == 1


@settings(max_examples=10)
@given(st.lists(st.sampled_from(ground_truth().to_pylist()), max_size=30))
def test_under_a_key_every_observed_row_is_right_stale_or_a_duplicate(rows: list[dict[str, Any]]) -> None:
    counts = {kind: anomaly.count for kind, anomaly in found(evidence(kept(rows), expectation=LATEST)).items()}
    right = Counter(row["key"] for row in rows if row in RIGHT)
    wrong = sum(row not in RIGHT for row in rows)
    lost = len(RIGHT) - len({row["key"] for row in rows})
    expected = {"stale": wrong, "duplicated": sum(right.values()) - len(right), "lost": lost}
    assert counts == {kind: count for kind, count in expected.items() if count}


# --- a job of other columns and another key ---

BY_KEY = Expectation(
    "SELECT key AS customer, count(*) AS events, max(batch) AS batch FROM input GROUP BY ALL", ("customer",)
)


def totals(change: Callable[[dict[str, Any]], dict[str, Any] | None] = lambda row: row) -> pa.Table:
    table = ground_truth(BY_KEY).sort_by("customer")
    rows = [change(row) for row in table.slice(0, 1).to_pylist()] + table.slice(1).to_pylist()
    return pa.Table.from_pylist([row for row in rows if row], schema=table.schema)


def test_a_truth_of_other_columns_is_compared_by_its_own_key() -> None:
    assert ground_truth(BY_KEY).column_names == ["customer", "events"]
    assert found(evidence(expectation=BY_KEY)) == {}
    first = totals().to_pylist()[0]["customer"]
    assert only(evidence(totals(lambda row: None), expectation=BY_KEY), "lost").records[0]["customer"] == first
    wrong = only(evidence(totals(lambda row: row | {"events": -1}), expectation=BY_KEY), "corrupted")
    assert wrong.records[0]["seen"] == {"events": -1}
    assert wrong.batches, "the expectation's result says where its rows come from"
    twice = pa.concat_tables([totals(), totals().slice(0, 2)])
    assert only(evidence(twice, expectation=BY_KEY), "duplicated").count == 2
    unknown = totals(lambda row: row | {"customer": "nobody"}).slice(0, 1)
    phantom = only(evidence(pa.concat_tables([totals(), unknown]), expectation=BY_KEY), "phantom")
    assert phantom.causes == ["1 rows have a customer that no input gives"]


# --- hanging, stuck ---


def test_a_transaction_left_open_is_hanging() -> None:
    left = [Open("kafka", "job-0", "Ongoing", "out-1", "readers get nothing"), Open("postgres", "gid", "prepared")]
    anomaly = only(evidence(None, killed_in_batch_1(), LANDED, hanging=left), "hanging")
    assert anomaly.count == 2
    assert anomaly.records[0] == {"kind": "kafka", "name": "job-0", "state": "Ongoing", "detail": "out-1"}
    assert anomaly.causes[0] == (
        "kafka transaction job-0 was left Ongoing after kill(driver) at sink.commit:after[batch=1], and no attempt "
        "ended it: readers get nothing"
    )


def test_a_job_that_never_gets_past_a_batch_is_stuck() -> None:
    paper = Paper().start().hand_over(1, 1).killed_here().start(2).hand_over(2, 1).exited(2, 1, error="E: no")
    paper.add("driver.gave_up", batch=1, error="E: no")
    anomaly = only(evidence(None, paper, LANDED, input_committed=False, stuck="E: no"), "stuck")
    assert (anomaly.count, anomaly.batches) == (1, [1])
    assert anomaly.causes == [
        "batch 1 was handed to the sink twice (driver local:1, then driver local:2 after kill(driver) at "
        "sink.commit:after[batch=1]); it never got past it: E: no"
    ]


def test_a_driver_that_ends_with_code_0_before_its_inputs_end_is_reported() -> None:
    paper = Paper().start().hand_over(1, 1).killed_here().start(2).hand_over(2, 1).exited(2, 0)
    paper.start(3).hand_over(3, 1).exited(3, 0).add("driver.gave_up", batch=1, error="E: no")
    [cause] = only(evidence(None, paper, LANDED, input_committed=False, stuck="E: no"), "stuck").causes
    assert "then driver local:3 after the driver's own end with code 0" in cause


def test_what_happened_to_a_batch_again_and_again_is_reported_once() -> None:
    paper = Paper().start().hand_over(1, 1).killed_here()
    for run in (2, 3, 4):
        paper.start(run).hand_over(run, 1).exited(run, 1, error="E: no")
    paper.add("driver.gave_up", batch=1, error="E: no")
    [cause] = only(evidence(None, paper, LANDED, input_committed=False, stuck="E: no"), "stuck").causes
    assert cause.endswith(
        "then driver local:3 after the driver's own end with code 1 (E: no), then driver local:4 after the same); "
        "it never got past it: E: no"
    )


# --- together ---

IDS = st.sampled_from([row["id"] for row in ground_truth().to_pylist()])


@settings(max_examples=40)
@given(
    lost=st.sets(IDS, max_size=9),
    twice=st.lists(IDS, max_size=9),
    wrong=st.sets(IDS, max_size=9),
    alien=st.integers(0, 3),
)
def test_every_observed_row_is_counted_as_exactly_one_thing(
    lost: set[int], twice: list[int], wrong: set[int], alien: int
) -> None:
    kept = [row["id"] for row in ground_truth().to_pylist() if row["id"] not in lost]
    copies = [one for one in twice if one not in lost]
    table = changed(wrong, payload="wrong")
    wrong_rows = table.filter(pa.compute.is_in(table["id"], pa.array(sorted(wrong - lost), pa.int64())))
    right = [one for one in kept if one not in wrong]
    observed = pa.concat_tables([rows_with([*right, *copies]), wrong_rows, unknown_rows([{"id": -1}] * alien)])
    counts = {kind: anomaly.count for kind, anomaly in found(evidence(observed)).items()}
    spare = Counter(copies)
    surplus = sum(number - (one in wrong) for one, number in spare.items())
    expected = {"lost": len(lost), "duplicated": surplus, "corrupted": len(wrong - lost), "phantom": alien}
    assert counts == {kind: count for kind, count in expected.items() if count}
    firsts = observed.num_rows - sum(counts.get(kind, 0) for kind in ("duplicated", "corrupted", "phantom"))
    assert firsts == len(right) + len(set(copies) & wrong)


def test_places_beyond_all_batches_are_reported_as_unknown() -> None:
    of = evidence(everything_and(BATCH_1[:1]), healthy())
    object.__setattr__(of, "batches", {})
    anomaly = only(of, "duplicated")
    assert "batch" not in anomaly.records[0]
    assert anomaly.records[0]["written_by"] == "unknown"


def test_a_driver_that_goes_on_after_a_pause_is_among_what_happened_to_the_job() -> None:
    paper = killed_in_batch_1()
    start = len(paper.journal)
    paper.add("process.resumed", target="broker", process="broker:1").add(
        "process.resumed", target="driver", process="local:1"
    )
    assert disturbances(paper.journal, [LANDED], start, None) == ["the resumption of driver local:1"]
