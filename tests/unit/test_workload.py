"""The workload is what it promises, for every size."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onceproof.assertions import ACK_SCHEMA, ROW_SCHEMA, Workload, encode, truth
from onceproof.assertions.relations import batch_table, select
from onceproof.assertions.workload import QUIET_PARTITION, rate_limit

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


def test_default_has_four_full_batches_and_no_tiny_one() -> None:
    workload = Workload(seed=1)
    found = shares(workload, workload.batch_bounds())
    visible = [sum(found[batch, p][0] for p in range(3)) for batch in range(workload.batches)]
    assert len(workload.batch_bounds()) == 5
    assert min(visible) >= 120


def test_default_has_one_task_without_rows_in_batch_three() -> None:
    workload = Workload(seed=1)
    empty = [place for place, (visible, _) in shares(workload, workload.batch_bounds()).items() if not visible]
    assert empty == [(3, QUIET_PARTITION)]


@settings(deadline=None, max_examples=50)
@given(SIZES)
def test_spark_cuts_as_many_batches_as_are_asked_for(workload: Workload) -> None:
    bounds = workload.batch_bounds()
    assert list(bounds) == list(range(workload.batches))
    ends = {p: end for p, (_, end) in bounds[workload.batches - 1].items()}
    assert ends == dict.fromkeys(range(workload.partitions), ends[0])


@settings(deadline=None, max_examples=50)
@given(SIZES)
def test_every_batch_has_aborted_rows_and_rows_of_every_partition_but_the_quiet_one(workload: Workload) -> None:
    for (batch, partition), (visible, aborted) in shares(workload, workload.batch_bounds()).items():
        assert aborted > 0
        assert (visible > 0) == ((batch, partition) != (workload.quiet_batch, QUIET_PARTITION))


@settings(deadline=None, max_examples=50)
@given(SIZES)
def test_every_full_batch_has_the_rows_asked_for(workload: Workload) -> None:
    found = shares(workload, workload.batch_bounds())
    for batch in range(workload.batches - 1):
        quiet = (QUIET_PARTITION,) if batch in (workload.quiet_batch, (workload.quiet_batch or -2) + 1) else ()
        wanted = workload.rows * (workload.partitions - len(quiet)) / workload.partitions
        assert sum(found[batch, p][0] for p in range(workload.partitions) if p not in quiet) >= wanted


@pytest.mark.parametrize("shift", [-5, -1, 1, 5])
def test_a_cut_beside_the_plan_leaves_the_quiet_partition_without_rows(shift: int) -> None:
    workload = Workload(seed=1)
    bounds = workload.batch_bounds()
    shifted = {b: {p: (first + shift, end + shift) for p, (first, end) in cut.items()} for b, cut in bounds.items()}
    assert shares(workload, shifted)[3, QUIET_PARTITION][0] == 0


def test_same_seed_gives_the_same_workload() -> None:
    assert list(Workload(seed=5).transactions()) == list(Workload(seed=5).transactions())
    assert truth(Workload(seed=5)).equals(truth(Workload(seed=5)))


def test_rows_of_a_seed_stay_the_same_from_release_to_release() -> None:
    first = next(Workload(seed=5).transactions()).records[0][1]
    assert first == (0, "Åsa-720", 9514.75, datetime(2026, 1, 1, 0, 0, 0, 10000), first.payload)


def test_another_seed_gives_other_rows() -> None:
    assert not truth(Workload(seed=5)).equals(truth(Workload(seed=6)))


def test_rows_are_what_every_target_can_hold() -> None:
    table = truth(Workload(seed=2))
    assert table.schema == ROW_SCHEMA
    assert all(column.null_count == 0 for column in table.columns)
    assert all(value * 8 == int(value * 8) for value in table["value"].to_pylist())
    assert all(time.microsecond % 1000 == 0 for time in table["event_time"].to_pylist())
    text = "".join(table["key"].to_pylist() + table["payload"].to_pylist())
    assert {"'", '"', ",", "é", "半", "🙂"} <= set(text)


@settings(deadline=None, max_examples=50)
@given(SIZES)
def test_ids_count_up_over_all_rows_and_the_truth_has_the_committed_ones(workload: Workload) -> None:
    acks = workload.planned_acks()
    assert acks.schema == ACK_SCHEMA
    assert acks["id"].to_pylist() == list(range(len(acks)))
    assert truth(workload)["id"].to_pylist() == acks.filter(acks["committed"])["id"].to_pylist()


@settings(deadline=None, max_examples=50)
@given(SIZES)
def test_no_two_records_share_a_place(workload: Workload) -> None:
    acks = workload.planned_acks()
    assert acks.group_by(["partition", "offset"]).aggregate([]).num_rows == len(acks)


def test_a_record_is_json_with_milliseconds_and_z() -> None:
    row = next(Workload(seed=5).transactions()).records[0][1]
    found = json.loads(encode(row))
    assert found == row._asdict() | {"event_time": "2026-01-01T00:00:00.010Z"}


@pytest.mark.parametrize(("name", "value"), [("rows", 0), ("batches", 0), ("partitions", -1), ("rows", 1.5)])
def test_a_size_that_makes_no_workload_is_one_clear_line(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^workload: {name} is {value}, but must be a whole number of at least 1$"):
        Workload(**{name: value})


def test_sizes_are_told_with_what_the_job_needs() -> None:
    assert Workload().as_json() == {
        "seed": 1,
        "partitions": 3,
        "batches": 5,
        "rows": 216,
        "max_offsets_per_trigger": 271,
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
