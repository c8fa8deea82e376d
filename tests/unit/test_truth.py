"""The truth is what the expectation makes of the input; what gives none is one clear line."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from onceproof.assertions import (
    INPUT_SCHEMA,
    ROW_SCHEMA,
    Expectation,
    ExpectationError,
    JobInput,
    Workload,
    check_expectation,
    committed_rows,
    job_input,
    planned,
    same_rows,
    truth,
    truth_schema,
    truth_until,
)
from onceproof.harness.cli.signals import as_interrupt

ENDLESS = "SELECT count(*) AS id FROM range(1000000000) a, range(1000000000) b WHERE a.range * b.range = -1"
SMALL = Workload(seed=3, rows=30)
GIVEN = planned(SMALL)
STORED = GIVEN.input
ALL = Expectation("SELECT * FROM input")
LATEST = Expectation(ALL.sql, latest=("key",))
GREATEST = Expectation(ALL.sql, latest=("key",), order="event_time")


def row(number: int, key: str, batch: int | None, offset: int, second: int = 0) -> dict[str, Any]:
    time = datetime(2026, 1, 1, 0, 0, second)
    values = {"id": number, "key": key, "value": 0.5, "event_time": time, "payload": ""}
    return values | {"partition": 0, "source_offset": offset, "batch": batch}


def stored(*rows: dict[str, Any], watermarks: Mapping[int, int] | None = None) -> JobInput:
    return job_input(pa.Table.from_pylist(list(rows), schema=INPUT_SCHEMA), watermarks or {})


def ids(table: pa.Table) -> list[int]:
    return sorted(table["id"].to_pylist())


def test_the_input_has_each_committed_row_with_its_place() -> None:
    assert STORED.schema == INPUT_SCHEMA
    acks = {ack["id"]: ack for ack in SMALL.planned_acks().to_pylist()}
    bounds = SMALL.batch_bounds()
    for one in STORED.to_pylist():
        ack = acks[one["id"]]
        assert (ack["partition"], ack["offset"], ack["committed"]) == (one["partition"], one["source_offset"], True)
        first, end = bounds[one["batch"]][one["partition"]]
        assert first <= one["source_offset"] < end
    assert same_rows(STORED.select(ROW_SCHEMA.names), committed_rows(SMALL))


def test_each_planned_batch_is_there_with_its_watermark() -> None:
    given = stored(row(1, "a", 0, 0), watermarks={1: 1_767_225_600_500, 0: 0})
    assert given.batches.to_pylist() == [
        {"batch": 0, "watermark": datetime(1970, 1, 1)},
        {"batch": 1, "watermark": datetime(2026, 1, 1, 0, 0, 0, 500_000)},
    ]
    late = Expectation("SELECT i.id, b.watermark FROM input i JOIN batches b ON b.batch = i.batch + 1")
    assert truth(late, given).to_pylist() == [{"id": 1, "watermark": datetime(2026, 1, 1, 0, 0, 0, 500_000)}]
    assert truth_until(late, given, 0).num_rows == 0


@pytest.mark.parametrize("watermark", [10**14 * 3, 10**18, -(10**18), 10**30])
def test_a_watermark_of_no_year_is_one_clear_line(watermark: int) -> None:
    with pytest.raises(
        ExpectationError, match=f"^the watermark {watermark} of a batch, in milliseconds since 1970, is o"
    ):
        stored(row(1, "a", 0, 0), watermarks={0: watermark})


def test_the_last_time_that_there_is_may_come_out() -> None:
    last = truth(Expectation("SELECT id, TIMESTAMP '9999-12-31 23:59:59.999999' AS t FROM input"), GIVEN)
    assert last["t"].to_pylist()[0] == datetime.max


def test_a_planned_watermark_is_the_latest_event_of_the_batches_before() -> None:
    for one in GIVEN.batches.to_pylist():
        times = [row["event_time"] for row in STORED.to_pylist() if row["batch"] < one["batch"]]
        assert one["watermark"] == max(times, default=datetime(1970, 1, 1))
    assert GIVEN.batches["batch"].to_pylist() == list(range(SMALL.batches + 1)), "one without data closes the rest"


def test_the_truth_of_a_job_that_passes_everything_through_is_the_committed_rows() -> None:
    assert truth(ALL, GIVEN).schema == ROW_SCHEMA
    assert same_rows(truth(ALL, GIVEN), committed_rows(SMALL))


@pytest.mark.parametrize("batch", range(-1, 5))
def test_the_truth_until_a_batch_has_the_rows_of_the_batches_up_to_it(batch: int) -> None:
    wanted = [one["id"] for one in STORED.to_pylist() if one["batch"] <= batch]
    assert ids(truth_until(ALL, GIVEN, batch)) == sorted(wanted)


def test_a_row_of_no_batch_is_in_the_truth_but_not_until_any_batch() -> None:
    table = stored(row(1, "a", 0, 0), row(2, "b", None, 9))
    assert ids(truth(ALL, table)) == [1, 2]
    assert ids(truth_until(ALL, table, 10**6)) == [1]


def test_an_expectation_may_filter_compute_and_aggregate() -> None:
    found = truth(Expectation("SELECT key, sum(id) AS total, count(*) AS n FROM input GROUP BY key", ("key",)), GIVEN)
    totals: dict[str, list[int]] = {}
    for one in STORED.to_pylist():
        totals.setdefault(one["key"], []).append(one["id"])
    assert {one["key"]: (one["total"], one["n"]) for one in found.to_pylist()} == {
        key: (sum(values), len(values)) for key, values in totals.items()
    }
    assert truth(Expectation("SELECT id FROM input WHERE value < 0;"), GIVEN).num_rows < STORED.num_rows


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("id", pa.int64()),
        ("CAST(1 AS HUGEINT)", pa.int64()),
        ("CAST(1 AS UTINYINT)", pa.int64()),
        ("1.5", pa.float64()),
        ("CAST(1.5 AS FLOAT)", pa.float64()),
        ("event_time", pa.timestamp("us")),
        ("DATE '2026-01-02'", pa.timestamp("us")),
        ("'x' || key", pa.string()),
    ],
)
def test_every_column_of_the_truth_is_of_one_of_four_types(value: str, kind: pa.DataType) -> None:
    assert truth_schema(Expectation(f"SELECT id, {value} AS it FROM input")).field("it").type == kind


@pytest.mark.parametrize(
    ("sql", "key", "why"),
    [
        ("SELEC * FROM input", ("id",), "the expectation is no SQL that DuckDB runs: Parser Error"),
        ("SELECT id FROM inputs", ("id",), "no SQL that DuckDB runs: Catalog Error: Table with name inputs"),
        ("SELECT nothing FROM input", ("id",), 'Referenced column "nothing" not found'),
        ("DROP TABLE input", ("id",), "a statement of the kind DROP where one SELECT is needed"),
        ("", ("id",), "0 statements where one SELECT is needed"),
        ("SELECT * FROM input; SELECT 1", ("id",), "2 statements where one SELECT is needed"),
        ("SELECT key FROM input", ("id",), "no column 'id' to tell its rows apart, but key: select it, or name"),
        ("SELECT * FROM input", ("partition",), "no column 'partition' to tell its rows apart"),
        ("SELECT id, id FROM input", ("id",), "two columns 'id'"),
        ('SELECT id, source_offset AS "offset" FROM input', ("id",), "column 'offset', which we use"),
        ("SELECT id, value AS kept FROM input", ("id",), "column 'kept', which we use"),
        ("SELECT id, value AS Reading FROM input", ("id",), "column 'Reading', which we use"),
        ("SELECT id, 9223372036854775808 + id AS big FROM input", ("id",), "'big'.*does not fit in int64.*VARCHAR"),
        ("SELECT id, true AS b FROM input", ("id",), "column 'b' .* is of type bool: cast it to BIGINT"),
        ("SELECT * FROM input WHERE id < 0", ("id",), "gives no row of this workload"),
        (
            "SELECT id, 'infinity'::TIMESTAMP AS t FROM input",
            ("id",),
            "column 't' .* has a time outside of the years 1",
        ),
        ("SELECT id, '-infinity'::TIMESTAMPTZ AS t FROM input", ("id",), "column 't' .* a time outside of the years 1"),
        ("SELECT id, TIMESTAMP '200000-01-01' AS t FROM input", ("id",), "keep it within them, or cast it to VARCHAR"),
        (
            "SELECT id, 'infinity'::DATE AS t FROM input",
            ("id",),
            "does not fit in timestamp.us. .*: cast it to VARCHAR",
        ),
        ("SELECT key, id FROM input", ("key",), "rows, but only .* that differ in key: name the columns"),
        ("SELECT nullif(id, 0) AS id FROM input", ("id",), "column 'id' .* is null in places"),
    ],
    ids=str,
)
def test_an_expectation_that_gives_no_truth_is_one_clear_line(sql: str, key: tuple[str, ...], why: str) -> None:
    with pytest.raises(ExpectationError, match=why) as error:
        check_expectation(Expectation(sql, key), SMALL)
    assert "\n" not in str(error.value)


def test_of_each_key_the_last_arrival_is_kept() -> None:
    table = stored(
        row(1, "a", 0, 5, second=9), row(2, "a", 1, 6), row(3, "a", 1, 7), row(4, "b", 0, 8), row(5, "a", 0, 4)
    )
    assert ids(truth(LATEST, table)) == [3, 4]
    assert ids(truth_until(LATEST, table, 0)) == [1, 4]


def test_a_row_of_no_batch_arrives_after_all_batches() -> None:
    assert ids(truth(LATEST, stored(row(1, "a", 7, 5), row(2, "a", None, 9)))) == [2]


def test_with_an_order_the_greatest_of_each_key_is_kept() -> None:
    table = stored(row(1, "a", 0, 5, second=9), row(2, "a", 1, 6, second=3), row(3, "b", 1, 7))
    assert ids(truth(GREATEST, table)) == [1, 3]


@pytest.mark.parametrize(
    ("expectation", "why"),
    [
        (Expectation(ALL.sql, latest=("customer",)), "the sink's KEY names column 'customer', but rows have id, key"),
        (Expectation(ALL.sql, latest=("key",), order="day"), "the sink's ORDER names column 'day', but rows have"),
        (Expectation("SELECT id, key FROM input", latest=("key",)), "KEY asks for the last arrival .* ORDER"),
    ],
)
def test_a_key_that_does_not_fit_the_expectation_is_one_clear_line(expectation: Expectation, why: str) -> None:
    with pytest.raises(ExpectationError, match=why) as error:
        check_expectation(expectation, SMALL)
    assert "\n" not in str(error.value)


def test_the_last_arrival_is_asked_for_only_where_rows_of_a_key_lie_in_one_partition() -> None:
    apart = Expectation("SELECT id % 8 AS eighth, id, batch, partition, source_offset FROM input", ("id",), ("eighth",))
    with pytest.raises(ExpectationError, match="rows of one eighth lie in several partitions of the source") as error:
        check_expectation(apart, SMALL)
    assert "give the sink ORDER" in str(error.value)
    check_expectation(Expectation(apart.sql, ("id",), ("eighth",), "id"), SMALL)


def test_a_time_without_a_zone_is_utc_whatever_the_machine_says() -> None:
    code = (
        "from onceproof.assertions.sql import select; print(select(\"SELECT TIMESTAMP '2026-01-01 00:00:30' = "
        "TIMESTAMPTZ '2026-01-01 00:00:30+00' AS same\").to_pylist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"TZ": "America/New_York"}, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[{'same': True}]", done.stderr


def test_an_expectation_that_is_no_function_of_its_input_is_one_clear_line() -> None:
    for column in ("random() AS chance", "now() AS seen_at", "uuid() AS number"):
        with pytest.raises(ExpectationError, match="gives other rows when it is computed again") as error:
            check_expectation(Expectation(f"SELECT id, {column} FROM input"), SMALL)
        assert "\n" not in str(error.value)


def test_an_expectation_that_takes_too_long_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("onceproof.assertions.truth"), "LONGEST", 0.2)
    with pytest.raises(
        ExpectationError, match=r"the expectation takes longer than 0\.2 s over \d+ rows: join"
    ) as error:
        check_expectation(Expectation(ENDLESS), SMALL)
    assert "\n" not in str(error.value)


def test_a_signal_ends_an_expectation_as_it_ends_anything_else() -> None:
    with as_interrupt():
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            check_expectation(Expectation(ENDLESS), SMALL)
