"""What readings while the job was under way say of a sink."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from onceproof.assertions import Evidence, Expectation, Glimpse, Guarantee, Open, Outcome, Verdict, judge, load, save
from onceproof.assertions.glimpses import truth_until
from paper_trial import (
    LANDED,
    PASSTHROUGH,
    changed,
    everything_but,
    evidence,
    ground_truth,
    ids_of,
    killed_in_batch_1,
    rows_with,
    stored_input,
    unknown_rows,
)

ALL, INCONCLUSIVE, FAIL = Outcome.PASS, Outcome.INCONCLUSIVE, Outcome.FAIL
BATCH_0, BATCH_1 = ids_of(0), ids_of(1)
LEFT = Open("kafka", "job-0", "Ongoing", "out-1")


def glimpse(rows: pa.Table | None, number: int = 1, committed: int | None = 0, **more: Any) -> Glimpse:
    """A reading at the replay of batch 1, if not said otherwise."""
    said = {"handed_over": 1, "at": "the replay's sink.write:after[batch=1]"} | more
    return Glimpse(number, 5, committed, rows=rows, **said)


BY_ID = Expectation("SELECT * FROM input", latest=("id",))
"""Rows with the key id: a newer version replaces an older one."""


def seen(
    *glimpses: Glimpse,
    end: pa.Table | None = None,
    claim: str = "exactly-once",
    expectation: Expectation = PASSTHROUGH,
    **more: Any,
) -> Evidence:
    end = ground_truth(expectation) if end is None else end
    of = evidence(end, killed_in_batch_1(), LANDED, claim=claim, expectation=expectation)
    return replace(of, glimpses=glimpses, **more)


def kinds(verdict: Verdict) -> list[str]:
    return [anomaly.kind for anomaly in verdict.anomalies]


@pytest.mark.parametrize(
    "ids", [[], BATCH_0, [*BATCH_0, *BATCH_1]], ids=["nothing yet", "before the batch in flight", "with it"]
)
def test_a_reading_with_or_without_the_batch_in_flight_breaks_nothing(ids: Sequence[int]) -> None:
    verdict = judge(seen(glimpse(rows_with(ids))))
    assert (verdict.outcome, verdict.guarantee, list(verdict.notes)) == (ALL, Guarantee.EXACTLY_ONCE, [])


def test_copies_that_a_reader_met_and_that_are_gone_leave_at_least_once() -> None:
    of = seen(glimpse(rows_with(BATCH_0)), glimpse(rows_with([*BATCH_0, *BATCH_1, *BATCH_1[:7]]), 2))
    verdict = judge(of)
    assert (verdict.outcome, verdict.guarantee) == (FAIL, Guarantee.AT_LEAST_ONCE)
    (withdrawn,) = verdict.anomalies
    assert (withdrawn.kind, withdrawn.count, withdrawn.batches) == ("withdrawn", 7, [1])
    assert (withdrawn.records[0]["expected"], withdrawn.records[0]["seen"]) == (2, 1)
    assert withdrawn.causes[0].endswith(
        "a reader met further copies of 7 rows that are gone at the end "
        "(reading 2, the replay's sink.write:after[batch=1])"
    )
    assert judge(replace(of, claim=Guarantee.AT_LEAST_ONCE)).outcome is ALL


def test_copies_that_several_readings_met_count_once() -> None:
    twice = rows_with([*BATCH_0, *BATCH_0])
    (withdrawn,) = judge(seen(glimpse(twice), glimpse(twice, 2))).anomalies
    assert withdrawn.count == len(BATCH_0)


def test_copies_that_are_still_there_are_duplicates_and_not_withdrawn() -> None:
    end = pa.concat_tables([ground_truth(), rows_with(BATCH_1)])
    verdict = judge(seen(glimpse(rows_with([*BATCH_1, *BATCH_1])), end=end))
    assert kinds(verdict) == ["duplicated"]


@pytest.mark.parametrize("claim", ["exactly-once", "at-least-once", "at-most-once"])
def test_a_row_that_a_reader_met_and_that_is_gone_leaves_nothing(claim: str) -> None:
    verdict = judge(seen(glimpse(rows_with(BATCH_0)), end=everything_but(BATCH_0[:2]), claim=claim))
    assert (verdict.outcome, verdict.guarantee, kinds(verdict)) == (FAIL, Guarantee.NONE, ["lost", "withdrawn"])
    assert "a reader met 2 rows that are gone at the end" in verdict.anomalies[1].causes[0]


def test_a_row_that_is_gone_for_a_while_leaves_nothing_though_it_is_there_at_the_end() -> None:
    verdict = judge(seen(glimpse(rows_with(BATCH_0)), glimpse(rows_with(BATCH_0[2:]), 2)))
    assert (verdict.outcome, verdict.guarantee, kinds(verdict)) == (FAIL, Guarantee.NONE, ["withdrawn"])
    assert "a reader met 2 rows that are gone in reading 2" in verdict.anomalies[0].causes[0]


def test_what_is_written_of_a_batch_in_flight_may_be_taken_back_and_written_again() -> None:
    half = glimpse(rows_with([*BATCH_0, *BATCH_1[:7]]))
    verdict = judge(seen(half, glimpse(rows_with(BATCH_0), 2), glimpse(rows_with([*BATCH_0, *BATCH_1]), 3, 1)))
    assert (verdict.outcome, verdict.guarantee) == (ALL, Guarantee.EXACTLY_ONCE)


def test_an_aborted_row_that_a_reader_met_leaves_nothing() -> None:
    (aborted, *_) = ids_of(1, committed=False)
    met = pa.concat_tables([rows_with(BATCH_0), unknown_rows([{"id": aborted}])])
    verdict = judge(seen(glimpse(met)))
    assert (verdict.outcome, verdict.guarantee, kinds(verdict)) == (FAIL, Guarantee.NONE, ["withdrawn"])


def test_a_row_that_was_never_written_and_is_gone_is_reported_without_a_batch() -> None:
    (withdrawn,) = judge(seen(glimpse(unknown_rows([{"id": -1}])))).anomalies
    assert (withdrawn.batches, len(withdrawn.causes)) == ([], 1)


def test_rows_that_are_gone_do_not_count_before_the_target_has_come_to_rest() -> None:
    of = seen(glimpse(rows_with(BATCH_0)), end=everything_but(BATCH_0[:2]))
    unsettled = replace(of, settlement=replace(of.settlement, unmet=["process local:9 still runs"]))
    assert (judge(unsettled).outcome, kinds(judge(unsettled))) == (INCONCLUSIVE, [])


def test_a_version_that_a_newer_one_replaced_is_not_withdrawn() -> None:
    """Rows with the key ``id`` whose value changes: here the truth of batch 0 is the end's truth, changed."""
    end = changed(BATCH_0[:3], value=0.125)
    then = rows_with(BATCH_0)
    assert kinds(judge(seen(glimpse(then), end=end))) == ["corrupted", "withdrawn"]
    assert kinds(judge(seen(glimpse(then), end=end, expectation=BY_ID))) == ["corrupted"]


def test_a_version_that_was_never_right_is_withdrawn_even_where_rows_have_a_key() -> None:
    wrong = changed(BATCH_0[:1], value=0.125).slice(0, 0)
    wrong = pa.concat_tables([wrong, unknown_rows([{"id": BATCH_0[0], "value": 0.125}])])
    assert kinds(judge(seen(glimpse(wrong), expectation=BY_ID))) == ["withdrawn"]


def test_a_key_of_which_nothing_is_left_is_withdrawn() -> None:
    verdict = judge(seen(glimpse(rows_with(BATCH_0)), end=everything_but(BATCH_0[:1]), expectation=BY_ID))
    assert kinds(verdict) == ["lost", "withdrawn"]


def test_part_of_a_batch_is_noted_and_breaks_only_a_sink_that_says_it_is_atomic() -> None:
    of = seen(glimpse(rows_with([*BATCH_0, *BATCH_1[:4]])))
    verdict = judge(of)
    assert (verdict.outcome, verdict.anomalies) == (ALL, [])
    note = f"a reader saw 4 of {len(BATCH_1)} rows of batch 1 (reading 1, the replay's sink.write:after[batch=1])"
    assert list(verdict.notes) == [f"{note}: the sink does not claim otherwise (ATOMIC)"]
    atomic = judge(replace(of, atomic=True))
    assert (atomic.outcome, atomic.guarantee, kinds(atomic)) == (FAIL, Guarantee.NONE, ["torn"])
    assert (atomic.anomalies[0].batches, list(atomic.notes)) == ([1], [])
    assert note in atomic.reason


@pytest.mark.parametrize("ids", [BATCH_0, [*BATCH_0, *BATCH_1]], ids=["none of it", "all of it"])
def test_a_whole_batch_or_none_of_it_is_not_torn(ids: Sequence[int]) -> None:
    verdict = judge(seen(glimpse(rows_with(ids)), atomic=True))
    assert (verdict.outcome, list(verdict.notes)) == (ALL, [])


def test_a_reading_that_failed_is_only_noted() -> None:
    verdict = judge(seen(glimpse(None, error="no such table")))
    assert verdict.outcome is ALL
    assert list(verdict.notes) == ["1 readings while the job was under way failed; the last one: no such table"]


def test_the_truth_until_a_batch_has_the_rows_of_all_batches_up_to_it() -> None:
    assert truth_until(evidence(), -1).num_rows == 0
    assert sorted(truth_until(evidence(), 1)["id"].to_pylist()) == sorted([*BATCH_0, *BATCH_1])
    assert truth_until(evidence(), 4).num_rows == ground_truth().num_rows


LATEST = Expectation("SELECT * FROM input", latest=("key",))
GREATEST = Expectation("SELECT * FROM input", latest=("key",), order="value")


def versions_after(batch: int, expectation: Expectation = LATEST) -> list[dict[str, Any]]:
    return truth_until(evidence(expectation=expectation), batch).to_pylist()


def kept(rows: Sequence[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=ground_truth().schema)


def replaced_within(batch: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A row that is right after ``batch``, and an earlier one of its key in the same batch."""
    events = [row for row in stored_input().to_pylist() if row["batch"] == batch]
    columns = ground_truth().column_names
    for right in versions_after(batch):
        for row in events:
            if row["key"] == right["key"] and row["id"] != right["id"] and right["id"] in ids_of(batch):
                return right, {name: row[name] for name in columns}
    raise AssertionError("no key comes twice in the batch")


def test_a_version_that_its_own_batch_must_have_replaced_is_stale_in_a_reading_and_not_withdrawn() -> None:
    right, earlier = replaced_within(1)
    rows = kept([earlier if row == right else row for row in versions_after(1)])
    of = seen(glimpse(rows, committed=1), expectation=LATEST)
    (stale,) = judge(of).anomalies
    assert (stale.kind, stale.count, stale.batches) == ("stale", 1, [1])
    assert (
        "1 of its rows were met by a reader while the job was under way where another row of their key arrived later"
        in stale.causes[0]
    )
    in_flight = seen(glimpse(rows, committed=0), expectation=LATEST)
    assert judge(in_flight).anomalies == [], "a batch in flight may show any of its versions"


def test_a_version_that_was_right_after_an_earlier_batch_may_be_late() -> None:
    of = seen(glimpse(kept(versions_after(0)), committed=1), expectation=LATEST)
    assert judge(of).anomalies == []


def test_two_rows_of_one_key_that_a_reader_met_are_withdrawn_once_one_is_gone() -> None:
    _, earlier = replaced_within(1)
    of = seen(glimpse(kept([earlier, *versions_after(1)])), expectation=LATEST)
    assert kinds(judge(of)) == ["withdrawn"]


def test_a_batch_of_which_some_keys_show_the_version_before_is_torn() -> None:
    before, after = versions_after(0), versions_after(1)
    unchanged = [row for row in after if row in before]
    new = [row for row in after if row not in before]
    old = {row["key"]: row for row in before}
    half = [row if number % 2 else old.get(row["key"]) for number, row in enumerate(new)]
    rows = kept([*unchanged, *(row for row in half if row)])
    verdict = judge(seen(glimpse(rows), expectation=LATEST, atomic=True))
    assert kinds(verdict) == ["torn"]
    assert verdict.anomalies[0].records[0]["expected"] == len(new)


def test_a_stale_row_alone_does_not_tear_a_batch() -> None:
    right, earlier = replaced_within(1)
    rows = kept([earlier if row == right else row for row in versions_after(1)])
    assert kinds(judge(seen(glimpse(rows, committed=1), expectation=LATEST, atomic=True))) == ["stale"]


def test_among_equals_in_the_order_an_older_one_does_not_tear_a_batch() -> None:
    events = stored_input().to_pylist()
    batch, older = next(
        (later["batch"], row)
        for row in events
        for later in events
        if (row["key"], row["value"]) == (later["key"], later["value"]) and row["batch"] < later["batch"]
        if later["id"] in {one["id"] for one in versions_after(later["batch"], GREATEST)}
    )
    older = {name: older[name] for name in ground_truth().column_names}
    rows = kept([older if row["key"] == older["key"] else row for row in versions_after(batch, GREATEST)])
    of = seen(glimpse(rows, committed=batch, handed_over=batch), expectation=GREATEST, atomic=True)
    assert judge(of).anomalies == []


KEPT: list[Callable[[], Evidence]] = [
    lambda: seen(glimpse(rows_with([*BATCH_1, *BATCH_1])), glimpse(None, 2, None, error="no", opened=(LEFT,))),
    lambda: seen(glimpse(rows_with(BATCH_1[:3])), atomic=True),
    lambda: seen(glimpse(rows_with(BATCH_0)), end=changed(BATCH_0[:3], value=0.125), expectation=BY_ID),
]


@pytest.mark.parametrize("make", KEPT, ids=["withdrawn", "torn", "key"])
def test_readings_that_were_kept_are_judged_the_same_again(make: Callable[[], Evidence], tmp_path: Path) -> None:
    save(make(), tmp_path)
    assert judge(load(tmp_path)) == judge(make())
    assert tuple(load(tmp_path).glimpses) == tuple(make().glimpses)
