"""What a reader returned, as typed rows: times, numbers and text in the forms in which databases and JSON give them.

A value is compared by its meaning, so that no sink is blamed for the type of a column. Forms that are accepted:

========= =======================================================================================================
int64     int, a Decimal, float or text that is a whole number
double    int, float, Decimal, numeric text
timestamp datetime (without a zone: UTC), ISO text with T or a blank, with or without fraction and zone, or a number
          since 1970-01-01T00:00:00Z in seconds, milliseconds, microseconds or nanoseconds, told by its magnitude
string    text, or bytes in UTF-8
========= =======================================================================================================

The types are those of the truth's columns, given as ``schema``. Null is accepted everywhere: a row without its key is a
phantom, any other null differs from the truth.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .tables import ROW_SCHEMA

EPOCH = datetime(1970, 1, 1)

UNITS = ((1e11, 1_000_000), (1e14, 1_000), (1e17, 1))
"""Below the first number: microseconds in a unit. 1e11 s is the year 5138, 1e11 ms is 1973; then us, at last ns."""


class RowError(ValueError):
    """A row that cannot be compared: one line naming the column, the value and the row."""


def to_table(rows: Any, schema: pa.Schema = ROW_SCHEMA) -> pa.Table:
    """Rows as a table of ``schema``; further columns are ignored.

    ``rows``: mappings, an Arrow table, or a DataFrame that can give one (``toArrow`` of Spark, ``__arrow_c_stream__``
    of pandas and Polars). Raises RowError for a missing column and for a value that cannot be read.

    >>> to_table([{"id": "7", "key": "a", "value": "1.5", "event_time": 0, "payload": "b", "more": 1}]).to_pylist()
    [{'id': 7, 'key': 'a', 'value': 1.5, 'event_time': datetime.datetime(1970, 1, 1, 0, 0), 'payload': 'b'}]
    """
    return _table((_row(number, row, schema) for number, row in enumerate(_mappings(rows, schema))), schema)


def rows_of_json(records: Iterable[Any], schema: pa.Schema = ROW_SCHEMA) -> pa.Table:
    """Values of a topic as rows: JSON objects, as bytes or as records with such a ``value``.

    A field that is absent is null, as Spark's ``to_json`` leaves nulls out; RowError if no object of all has it. A
    value that is no JSON object, or that has a field which cannot be read, becomes a row of nulls with the value's text
    in the last column of text (unless that is the first column, a key): a reader gets it, nobody wrote it, so it is a
    phantom.
    """
    texts = [_decoded(getattr(record, "value", record)) for record in records]
    objects = [_object(text) for text in texts]
    read = [found for found in objects if found is not None]
    for column in schema.names:
        if read and not any(column in found for found in read):
            raise RowError(f"column {column!r} is missing in every record: they have {_names(read[0])}")
    rows = zip(texts, objects, strict=True)
    return _table((_row_of_json(number, text, found, schema) for number, (text, found) in enumerate(rows)), schema)


def same_rows(one: pa.Table, other: pa.Table) -> bool:
    """Whether two readings hold the same rows, each as often, in whatever order. One NaN is as good as another.

    >>> nan = pa.table({"value": [float("nan"), 1.0]})
    >>> same_rows(nan, nan.take([1, 0])), same_rows(nan, pa.table({"value": [1.0, None]}))
    (True, False)
    """
    if one.num_rows != other.num_rows:
        return False
    return bool(_in_order(one).equals(_in_order(other.select(one.column_names))))


def _in_order(table: pa.Table) -> pa.Table:
    """Sorted by all columns; a NaN, which equals nothing, is a null that a further column tells from others."""
    for place, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        if pa.types.is_floating(column.type):
            nan = pc.is_nan(column)
            table = table.set_column(place, name, pc.if_else(nan, pa.scalar(None, column.type), column))
            table = table.append_column(f"{name} is NaN", nan)
    return table.sort_by([(name, "ascending") for name in table.column_names])


def _table(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema)


def _mappings(rows: Any, schema: pa.Schema) -> Iterator[Any]:
    if hasattr(rows, "toArrow"):
        rows = rows.toArrow()
    elif not isinstance(rows, pa.Table) and hasattr(rows, "__arrow_c_stream__"):
        rows = pa.table(rows)
    if not isinstance(rows, pa.Table):
        return iter(rows)
    for column in schema.names:
        _require(column, rows.column_names, "the table")
    return iter(rows.select(schema.names).to_pylist())


def _row(number: int, row: Any, schema: pa.Schema) -> tuple[Any, ...]:
    if not isinstance(row, Mapping):
        raise RowError(f"row {number} is {_shown(row)}: a row must be a mapping from column to value")
    for column in schema.names:
        _require(column, row, f"row {number}")
    return tuple(_read(field, row[field.name], number) for field in schema)


def _require(column: str, names: Any, where: str) -> None:
    if column not in names:
        raise RowError(f"column {column!r} is missing in {where}: it has {_names(names)}")


def _row_of_json(number: int, text: str, found: dict[str, Any] | None, schema: pa.Schema) -> tuple[Any, ...]:
    if found is not None:
        with suppress(RowError, RecursionError):
            return tuple(_read(field, found.get(field.name), number) for field in schema)
    last = max((place for place, field in enumerate(schema) if pa.types.is_string(field.type)), default=0)
    return tuple(text if place == last > 0 else None for place in range(len(schema)))


def _decoded(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _object(text: str) -> dict[str, Any] | None:
    """The JSON object; None for what is none, or is nested too deeply to be read."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _read(field: pa.Field, value: Any, number: int) -> Any:
    if value is None:
        return None
    reader, meant = READERS[field.type]
    try:
        return reader(value)
    except (ValueError, TypeError, ArithmeticError):
        raise RowError(f"column {field.name!r} of row {number} is {_shown(value)}: not {meant}") from None


def _integer(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError
    number = value if isinstance(value, int | float) else _whole(str(value))
    if number != int(number) or not -(2**63) <= number < 2**63:
        raise ValueError
    return int(number)


def _whole(text: str) -> Decimal | float:
    """A text with an exponent is that of a double: the digits that tell it from its neighbours, not all that it has."""
    return float(text) if "e" in text.lower() else Decimal(text)


def _number(value: Any) -> float:
    if isinstance(value, bool | bytes):
        raise TypeError
    return float(value)


def _text(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8")
    if not isinstance(value, str):
        raise TypeError
    value.encode("utf-8")  # a lone surrogate is no text that a target could hold
    return value


def _time(value: Any) -> datetime:
    if isinstance(value, datetime):
        return _utc(value)
    if isinstance(value, str) and not _is_number(value):
        return _utc(datetime.fromisoformat(value.strip()))
    if isinstance(value, bool | bytes):
        raise TypeError
    return _since_epoch(Decimal(str(value)))


def _utc(time: datetime) -> datetime:
    """Without a zone, in UTC; a plain datetime, whatever subclass it was (pandas' Timestamp has nanoseconds)."""
    plain = datetime.combine(time.date(), time.timetz())
    return plain if plain.tzinfo is None else plain.astimezone(UTC).replace(tzinfo=None)


def _since_epoch(number: Decimal) -> datetime:
    for below, microseconds in UNITS:
        if abs(number) < below:
            return EPOCH + timedelta(microseconds=round(number * microseconds))
    return EPOCH + timedelta(microseconds=round(number / 1000))


def _is_number(text: str) -> bool:
    """``20260101`` is a number here, and a date to fromisoformat."""
    try:
        return Decimal(text).is_finite()
    except InvalidOperation:
        return False


def _names(names: Iterable[Any]) -> str:
    return ", ".join(map(str, names)) or "no columns"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


READERS: Mapping[pa.DataType, tuple[Callable[[Any], Any], str]] = {
    pa.int64(): (_integer, "a whole number of 64 bits"),
    pa.float64(): (_number, "a number"),
    pa.timestamp("us"): (_time, "a time (a datetime, ISO 8601 text, or a number since 1970)"),
    pa.string(): (_text, "text"),
}
"""How a value of each type of a truth's columns is read, and what it must be."""
