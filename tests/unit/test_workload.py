"""The workload is what it promises, for every size."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onceproof.assertions import ACK_SCHEMA, ROW_SCHEMA, Row, Workload, committed_rows, encode
from onceproof.assertions.places import batch_table
from onceproof.assertions.relations import select
from onceproof.assertions.workload import CYCLES, QUIET_PARTITION, rate_limit

SIZES = st.builds(
    Workload, seed=st.integers(0, 10), partitions=st.integers(1, 9), batches=st.integers(1, 7), rows=st.integers(1, 400)
)


def shares(workload: Workload, bounds: dict[int, dict[int, tuple[int, int]]]) -> dict[tuple[int, int], tuple[int, int]]:
    """(visible, aborted) records of each (batch, partition)."""
    found = select(
        "SELECT batch, b.partition, coalesce(sum(committed::int), 0) AS visible, count(a.id) AS records"
        " FROM batches b LEFT JOIN acks a ON a.partition = b.partition"
        ' AND a."offset" >= first_offset AND a."offset" < end_offset GROUP BY ALL',
        acks=workload.planned_acks(),
        batches=batch_table(bounds),
    )
    return {
        (row["batch"], row["partition"]): (int(row["visible"]), row["records"] - int(row["visible"]))
        for row in found.to_pylist()
    }


def sizes(workload: Workload) -> list[int]:
    """Visible rows of each batch."""
    found = shares(workload, workload.batch_bounds())
    return [sum(found[batch, p][0] for p in range(workload.partitions)) for batch in range(workload.batches)]


def test_default_batches_have_from_one_to_more_than_a_thousand_rows() -> None:
    assert sizes(Workload(seed=1)) == [108, 216, 1728, 144, 1]


def test_default_has_one_task_without_rows_in_batch_three_and_a_single_row_in_the_last() -> None:
    workload = Workload(seed=1)
    empty = [place for place, (visible, _) in shares(workload, workload.batch_bounds()).items() if not visible]
    assert sorted(empty) == [(3, QUIET_PARTITION), (4, 1), (4, 2)]
    assert (workload.quiet_batch, workload.single_batch) == (3, 4)


@settings(max_examples=25)
@given(SIZES)
def test_spark_cuts_as_many_batches_as_are_asked_for(workload: Workload) -> None:
    bounds = workload.batch_bounds()
    assert list(bounds) == list(range(workload.batches))
    ends = {p: end for p, (_, end) in bounds[workload.batches - 1].items()}
    assert ends == dict.fromkeys(range(workload.partitions), ends[0])


@settings(max_examples=25)
@given(SIZES)
def test_every_batch_has_aborted_rows_and_rows_of_every_partition_but_the_quiet_one(workload: Workload) -> None:
    for (batch, partition), (visible, aborted) in shares(workload, workload.batch_bounds()).items():
        assert aborted > 0
        if batch != workload.single_batch:
            assert (visible > 0) == ((batch, partition) != (workload.quiet_batch, QUIET_PARTITION))


@settings(max_examples=25)
@given(SIZES)
def test_batch_one_has_the_rows_asked_for_the_first_half_of_them_and_the_last_a_single_one(workload: Workload) -> None:
    found, exact = sizes(workload), workload.partitions * CYCLES
    if workload.batches > 1:
        assert workload.rows / 2 <= found[0] < workload.rows / 2 + exact
    if workload.batches > 1 and workload.quiet_batch != 1:
        assert workload.rows <= found[1] < workload.rows + exact
    if workload.batches > 3:
        assert found[-1] == 1


@pytest.mark.parametrize("shift", [-5, -1, 1, 5])
def test_a_cut_off_the_plan_leaves_the_quiet_partition_without_rows(shift: int) -> None:
    workload = Workload(seed=1)
    bounds = workload.batch_bounds()
    shifted = {b: {p: (first + shift, end + shift) for p, (first, end) in cut.items()} for b, cut in bounds.items()}
    assert shares(workload, shifted)[3, QUIET_PARTITION][0] == 0


def test_same_seed_gives_the_same_workload() -> None:
    assert list(Workload(seed=5).transactions()) == list(Workload(seed=5).transactions())
    assert committed_rows(Workload(seed=5)).equals(committed_rows(Workload(seed=5)))


def test_rows_of_a_seed_stay_the_same_from_release_to_release() -> None:
    first = next(Workload(seed=5).transactions()).records[0][1]
    assert first == (975740, "Åsa-3", 0.125, datetime(2025, 12, 31, 23, 59, 19, 827000), "it's late #717900")


def test_another_seed_gives_other_rows() -> None:
    assert not committed_rows(Workload(seed=5)).equals(committed_rows(Workload(seed=6)))


def test_rows_are_what_every_target_can_hold() -> None:
    table = committed_rows(Workload(seed=2))
    assert table.schema == ROW_SCHEMA
    assert all(column.null_count == 0 for column in table.columns)
    assert all(value * 8 == int(value * 8) for value in table["value"].to_pylist())
    assert all(time.microsecond % 1000 == 0 for time in table["event_time"].to_pylist())
    text = "".join(table["key"].to_pylist() + table["payload"].to_pylist())
    assert {"'", '"', ",", "é", "半", "🙂"} <= set(text)
    assert text.isprintable()


def committed(workload: Workload) -> list[tuple[int, int, Row]]:
    """(batch, partition, row) of the visible rows, in the order of writing."""
    bounds, at = workload.batch_bounds(), {ack["id"]: ack for ack in workload.planned_acks().to_pylist()}
    found = []
    for partition, row in (record for txn in workload.transactions() if txn.commit for record in txn.records):
        offset = at[row.id]["offset"]
        batch = next(number for number, cut in bounds.items() if cut[partition][0] <= offset < cut[partition][1])
        found.append((batch, partition, row))
    return found


def batches_of(rows: list[tuple[int, int, Row]], what: Callable[[Row], object]) -> dict[object, list[int]]:
    """In which batches a thing occurs, once for each row that has it."""
    found: dict[object, list[int]] = {}
    for batch, _, row in rows:
        found.setdefault(what(row), []).append(batch)
    return found


SEEDS = pytest.mark.parametrize("seed", range(1, 6))


@SEEDS
def test_ids_rise_neither_with_batches_nor_within_a_partition(seed: int) -> None:
    rows = committed(Workload(seed=seed))
    for batch in range(3):
        ids = [[row.id for number, _, row in rows if number == one] for one in (batch, batch + 1)]
        assert min(ids[1]) < max(ids[0])
        assert max(ids[1]) > min(ids[0])
    for partition in range(3):
        ids_there = [row.id for _, place, row in rows if place == partition]
        falling = sum(later < earlier for earlier, later in pairwise(ids_there))
        assert 0.4 < falling / len(ids_there) < 0.6


@SEEDS
def test_ids_are_zero_small_and_large_and_each_is_exact_as_a_double(seed: int) -> None:
    ids = committed_rows(Workload(seed=seed))["id"].to_pylist()
    assert len(set(ids)) == len(ids)
    assert (min(ids), max(ids) > 2**60, max(ids) < 2**63) == (0, True, True)
    assert all(int(float(one)) == one for one in ids)


def test_the_id_zero_is_in_batch_one() -> None:
    assert [batch for batch, _, row in committed(Workload()) if row.id == 0] == [1]


@SEEDS
def test_event_times_collide_and_arrive_out_of_order(seed: int) -> None:
    rows = committed(Workload(seed=seed))
    times = [row.event_time for _, _, row in rows]
    assert sum(later < earlier for earlier, later in pairwise(times)) > len(rows) / 4
    assert any(len(set(batches)) > 1 for batches in batches_of(rows, lambda row: row.event_time).values())


@SEEDS
@pytest.mark.parametrize(
    "what",
    [lambda row: (row.key, row.value), lambda row: (row.key, row.event_time), lambda row: row[1:], lambda row: row[4]],
    ids=["key and value", "key and time", "all but the id", "payload"],
)
def test_different_rows_have_the_same(seed: int, what: Callable[[Row], object]) -> None:
    assert sum(len(batches) > 1 for batches in batches_of(committed(Workload(seed=seed)), what).values()) > 10


@SEEDS
def test_a_pair_of_key_and_value_comes_again_in_another_batch(seed: int) -> None:
    pairs = batches_of(committed(Workload(seed=seed)), lambda row: (row.key, row.value)).values()
    assert sum(len(set(batches)) > 1 for batches in pairs) > 10


@SEEDS
def test_a_key_has_several_events_in_several_batches_but_in_one_partition(seed: int) -> None:
    rows = committed(Workload(seed=seed))
    keys = batches_of(rows, lambda row: row.key).values()
    assert all(len(batches) > 1 for batches in keys)
    assert sum(len(set(batches)) > 2 for batches in keys) > len(keys) / 2
    assert len({(row.key, partition) for _, partition, row in rows}) == len(keys)


@SEEDS
def test_texts_are_empty_long_and_not_ascii_and_values_of_both_signs_and_zero(seed: int) -> None:
    table = committed_rows(Workload(seed=seed))
    lengths = [len(text.encode()) for text in table["payload"].to_pylist()]
    assert (min(lengths), 2000 < max(lengths) < 10_000) == (0, True)
    assert not all(text.isascii() for text in table["payload"].to_pylist() if len(text) > 1000)
    values = table["value"].to_pylist()
    assert min(values) < 0 < max(values)
    assert 0 in values


@SEEDS
def test_the_latest_event_of_a_key_is_often_not_its_last_arrival(seed: int) -> None:
    """Else a sink that keeps the wrong one of the two would look right."""
    arrivals: dict[str, list[Row]] = {}
    for _, _, row in committed(Workload(seed=seed)):
        arrivals.setdefault(row.key, []).append(row)
    differs = [max(row.event_time for row in rows) != rows[-1].event_time for rows in arrivals.values()]
    assert sum(differs) > len(differs) / 2


@settings(max_examples=25)
@given(SIZES)
def test_whole_seconds_do_not_tell_which_event_of_a_key_is_the_newest(workload: Workload) -> None:
    """In one batch the second of two comes a millisecond earlier than the first, in another one a millisecond later."""
    events: dict[str, list[tuple[int, Row]]] = {}
    for batch, _, row in committed(workload):
        events.setdefault(row.key, []).append((batch, row))
    pairs = [found for found in events.values() if len(found) == 2 and found[0][0] < found[1][0]]
    apart = {
        second.event_time - first.event_time
        for (_, first), (_, second) in pairs
        if first.event_time.replace(microsecond=0) == second.event_time.replace(microsecond=0)
    }
    if workload.batches > 3:
        assert apart >= {timedelta(milliseconds=1), timedelta(milliseconds=-1)}


@settings(max_examples=25)
@given(SIZES)
def test_ids_are_unique_over_all_rows_and_the_truth_has_the_committed_ones(workload: Workload) -> None:
    acks = workload.planned_acks()
    assert acks.schema == ACK_SCHEMA
    assert len(set(acks["id"].to_pylist())) == len(acks)
    assert committed_rows(workload)["id"].to_pylist() == acks.filter(acks["committed"])["id"].to_pylist()


@settings(max_examples=25)
@given(SIZES)
def test_no_two_records_share_a_place(workload: Workload) -> None:
    acks = workload.planned_acks()
    assert acks.group_by(["partition", "offset"]).aggregate([]).num_rows == len(acks)


def test_a_record_is_json_with_milliseconds_and_z() -> None:
    row = next(Workload(seed=5).transactions()).records[0][1]
    found = json.loads(encode(row))
    assert found == row._asdict() | {"event_time": "2025-12-31T23:59:19.827Z"}


@pytest.mark.parametrize(("name", "value"), [("rows", 0), ("batches", 0), ("partitions", -1), ("rows", 1.5)])
def test_a_size_that_makes_no_workload_is_one_clear_line(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^workload: {name} is {value}, but must be a whole number of at least 1$"):
        Workload(**{name: value})


def test_sizes_are_reported_with_what_the_job_needs() -> None:
    assert Workload().as_json() == {
        "seed": 1,
        "partitions": 3,
        "batches": 5,
        "rows": 216,
        "max_offsets_per_trigger": 2083,
    }


def test_rate_limit_shares_out_in_proportion_and_starves_nobody() -> None:
    assert rate_limit(100, {0: 0, 1: 0}, {0: 1000, 1: 1}) == {0: 99, 1: 1}
    assert rate_limit(10, {0: 5, 1: 7}, {0: 25, 1: 7}) == {0: 15, 1: 7}
    assert rate_limit(10, {0: 0}, {0: 4}) == {0: 4}


def test_the_quiet_batch_needs_two_partitions_and_two_batches() -> None:
    assert Workload(partitions=1).quiet_batch is None
    assert Workload(batches=1).quiet_batch is None
    assert Workload(batches=3).quiet_batch == 2
    visible = pc.sum(Workload(batches=1).planned_acks()["committed"]).as_py()
    assert visible >= 200
