"""Rows are compared by their meaning, whatever types a target gives back; what cannot be compared is a clear error."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onceproof.assertions import (
    ROW_SCHEMA,
    RowError,
    Workload,
    committed_rows,
    encode,
    rows_of_json,
    same_rows,
    to_table,
)

ROW: dict[str, Any] = {
    "id": 7,
    "key": "a",
    "value": 1.5,
    "event_time": datetime(2026, 1, 2, 3, 4, 5, 678000),
    "payload": "p",
}
TIME = ROW["event_time"]


def read(**values: Any) -> dict[str, Any]:
    row: dict[str, Any]
    [row] = to_table([ROW | values]).to_pylist()
    return row


@pytest.mark.parametrize(
    "time",
    [
        datetime(2026, 1, 2, 3, 4, 5, 678000),
        datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC),
        datetime(2026, 1, 2, 5, 4, 5, 678000, tzinfo=timezone(timedelta(hours=2))),
        "2026-01-02T03:04:05.678",
        "2026-01-02 03:04:05.678",
        "2026-01-02T03:04:05.678Z",
        "2026-01-02 03:04:05.678+00",
        "2026-01-02T05:04:05.678000+02:00",
        1767323045.678,
        1767323045678,
        1767323045678000,
        1767323045678000000,
        "1767323045678",
        Decimal("1767323045.678"),
    ],
    ids=str,
)
def test_a_time_in_any_common_form_is_the_same_time(time: object) -> None:
    assert read(event_time=time)["event_time"] == TIME


def test_a_time_without_fraction_is_read() -> None:
    assert read(event_time="2026-01-02T03:04:05Z")["event_time"] == TIME.replace(microsecond=0)


@pytest.mark.parametrize("value", [1.5, Decimal("1.5"), "1.5", "1.50", "15e-1"], ids=repr)
def test_a_value_in_any_common_form_is_the_same_number(value: object) -> None:
    assert read(value=value)["value"] == 1.5


@pytest.mark.parametrize("identity", [7, "7", Decimal("7"), Decimal("7.0"), 7.0, "7.0"], ids=repr)
def test_an_id_in_any_common_form_is_the_same_id(identity: object) -> None:
    assert read(id=identity)["id"] == 7


@pytest.mark.parametrize("identity", [float(5 * 2**59), str(float(5 * 2**59))], ids=repr)
def test_an_id_that_comes_as_a_double_is_all_of_it(identity: object) -> None:
    """2.8823037615171174e+18 are the digits that tell it from its neighbours."""
    assert read(id=identity)["id"] == 5 * 2**59


def test_text_may_come_as_bytes() -> None:
    assert read(key="Zoë".encode())["key"] == "Zoë"


def test_null_is_read_as_null() -> None:
    nothing = dict.fromkeys(ROW)
    assert to_table([nothing]).to_pylist() == [nothing]


def test_further_columns_are_ignored() -> None:
    assert read(more=1, batch_id=2) == ROW


def test_no_rows_are_an_empty_table() -> None:
    assert to_table([]).schema == ROW_SCHEMA
    assert rows_of_json([]).num_rows == 0


@pytest.mark.parametrize("column", list(ROW))
def test_a_missing_column_is_named(column: str) -> None:
    row = {name: value for name, value in ROW.items() if name != column}
    with pytest.raises(RowError, match=f"^column '{column}' is missing in row 0: it has "):
        to_table([row])
    with pytest.raises(RowError, match=f"^column '{column}' is missing in the table: it has "):
        to_table(pa.Table.from_pylist([row]))
    with pytest.raises(RowError, match=f"^column '{column}' is missing in every record: they have "):
        rows_of_json([json.dumps(row, default=str).encode()])


@pytest.mark.parametrize(
    ("column", "value", "meant"),
    [
        ("id", "seven", "a whole number of 64 bits"),
        ("id", 7.5, "a whole number of 64 bits"),
        ("id", True, "a whole number of 64 bits"),
        ("id", 2**63, "a whole number of 64 bits"),
        ("id", float("nan"), "a whole number of 64 bits"),
        ("value", "1,5", "a number"),
        ("value", [1.5], "a number"),
        ("event_time", "yesterday", "a time"),
        ("event_time", b"2026", "a time"),
        ("event_time", float("inf"), "a time"),
        ("event_time", 1e30, "a time"),
        ("key", 5, "text"),
        ("payload", b"\xff", "text"),
    ],
    ids=str,
)
def test_a_value_that_cannot_be_read_is_named_with_its_row(column: str, value: object, meant: str) -> None:
    with pytest.raises(RowError) as error:
        to_table([ROW, ROW | {column: value}])
    assert str(error.value).startswith(f"column {column!r} of row 1 is {value!r}: not {meant}")
    assert "\n" not in str(error.value)


def test_a_row_that_is_no_mapping_is_a_clear_error() -> None:
    with pytest.raises(RowError, match="row 0 is \\(1, 2\\): a row must be a mapping"):
        to_table([(1, 2)])


def test_an_arrow_table_and_a_data_frame_are_read_as_rows() -> None:
    table = pa.Table.from_pylist([ROW | {"more": 1}])

    class Frame:
        def toArrow(self) -> pa.Table:
            return table

    class Stream:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return table.__arrow_c_stream__(requested_schema)

    for rows in (table, Frame(), Stream()):
        assert to_table(rows).to_pylist() == [ROW]


class Record(NamedTuple):
    partition: int
    offset: int
    value: bytes | None


def test_a_workload_read_back_from_its_topic_is_the_truth() -> None:
    workload = Workload(seed=1, rows=30)
    records = [
        Record(partition, 0, encode(row))
        for transaction in workload.transactions()
        if transaction.commit
        for partition, row in transaction.records
    ]
    assert rows_of_json(records).equals(committed_rows(workload))
    assert rows_of_json(record.value for record in records).equals(committed_rows(workload))


DEEP = b"[" * 100_000
NO_ROWS = [b"not JSON", b"[1, 2]", b"\xff\xfe", b'{"id": "x"}', None, b"5", DEEP, b'{"id": "\\ud800"}']


@pytest.mark.parametrize("value", NO_ROWS, ids=lambda value: repr(value)[:20])
def test_a_value_that_is_no_row_is_kept_as_a_row_without_id(value: bytes | None) -> None:
    good = json.dumps(ROW, default=str).encode()
    rows = rows_of_json([good, value]).to_pylist()
    assert rows[0] == ROW
    assert rows[1]["id"] is None
    assert rows[1]["payload"]


def test_an_absent_field_is_null_if_other_records_have_it() -> None:
    good, lacking = json.dumps(ROW, default=str).encode(), b'{"id": 8}'
    assert rows_of_json([good, lacking]).to_pylist()[1] == dict.fromkeys(ROW) | {"id": 8}


@given(st.permutations([ROW, ROW, ROW | {"id": 8}, ROW | {"key": None}]))
def test_readings_are_the_same_in_whatever_order(rows: list[dict[str, Any]]) -> None:
    assert same_rows(to_table(rows), to_table([ROW, ROW | {"id": 8}, ROW, ROW | {"key": None}]))


@pytest.mark.parametrize("other", [[ROW], [ROW, ROW | {"id": 8}], [ROW, ROW, ROW]], ids=len)
def test_readings_differ_by_any_row_or_copy(other: list[dict[str, Any]]) -> None:
    assert not same_rows(to_table([ROW, ROW]), to_table(other))


OTHER = pa.schema([("customer", pa.string()), ("events", pa.int64()), ("until", pa.timestamp("us"))])


def test_rows_are_read_by_the_types_of_whatever_columns_are_true() -> None:
    rows = [{"customer": b"a", "events": "7", "until": "2026-01-02T03:04:05.678Z", "more": 1}]
    assert to_table(rows, OTHER).to_pylist() == [{"customer": "a", "events": 7, "until": TIME}]
    assert rows_of_json([json.dumps(rows[0], default=bytes.decode).encode()], OTHER).equals(to_table(rows, OTHER))
    with pytest.raises(RowError, match="column 'events' of row 0 is 'x': not a whole number"):
        to_table([rows[0] | {"events": "x"}], OTHER)


def test_a_value_that_is_no_row_of_a_single_text_column_is_a_row_without_its_key() -> None:
    assert rows_of_json([b"no JSON"], OTHER).to_pylist() == [dict.fromkeys(OTHER.names)]
