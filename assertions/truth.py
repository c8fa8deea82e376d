"""The ground truth: what a job's expectation, in SQL, makes of the input; computed by DuckDB, without Spark.

The expectation is one SELECT over two tables. ``input`` has the committed records, each once, with their place::

    id bigint, key text, value double, event_time timestamp (UTC), payload text,
    partition int, source_offset bigint, batch bigint (null: the job has planned no batch with it)

``batches`` has each batch that the job has planned, those without data included, with the watermark that it had by the
checkpoint (``batchWatermarkMs`` of offsets/N, see OffsetSeqMetadata): rows are late by that of the batch before, and
windows are closed by the batch's own. A job without a watermark has 1970 there::

    batch bigint, watermark timestamp (UTC)

The rows that must come out have the columns of its result but for the places (``partition``, ``source_offset``,
``batch``), which say where a row comes from, and in which order. All times are UTC.

>>> from onceproof.assertions import Workload
>>> stored = planned(Workload(seed=7, rows=24))
>>> truth(Expectation("SELECT * FROM input WHERE partition = 1"), stored).column_names
['id', 'key', 'value', 'event_time', 'payload']
>>> truth(Expectation("SELECT key, count(*) AS events FROM input GROUP BY key", key=("key",)), stored).column_names
['key', 'events']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate

import pyarrow as pa
import pyarrow.compute as pc

from .model import Evidence, Expectation
from .places import PLACES, batch_table
from .rows import same_rows
from .sql import equal, quoted, select
from .tables import INPUT_SCHEMA, ROW_SCHEMA, WATERMARK_SCHEMA, JobInput
from .workload import Workload, committed_rows

PROVENANCE = ("partition", "source_offset", "batch")

RESERVED = ("offset", "committed", "seen", "surplus", "kept", "reading", "later")
"""Names that the checkers' own columns have; SQL tells no capital letters apart."""

ARRIVAL = ("batch", "source_offset")

EARLIEST, LATEST = (
    pa.scalar(time, pa.timestamp("us")).cast(pa.int64()).as_py() for time in (datetime.min, datetime.max)
)
"""Microseconds since 1970."""

LONGEST = 300.0
"""Seconds that one computation of an expectation may take; those of the reference jobs take milliseconds."""

UNIQUE_MEND = (
    "name the columns that tell its rows apart in its first line, as in: -- key: customer, day (and, where a key comes "
    "in several versions, in the second, as in: -- unique: customer, day, events)"
)
ARRIVAL_MEND = "select source_offset too, which says in which order the versions of a key arrive"

INPUT = f"""
SELECT {", ".join(f"r.{quoted(name)}" for name in ROW_SCHEMA.names)}, p.partition, p."offset" AS source_offset, p.batch
FROM rows r JOIN ({PLACES}) p ON r.id = p.id
ORDER BY p.batch NULLS LAST, p.partition, p."offset"
"""


class ExpectationError(ValueError):
    """An expectation that gives no ground truth: one line naming what is wrong and the fix."""


def job_input(stored: pa.Table, watermarks: Mapping[int, int]) -> JobInput:
    """``stored``: the table ``input``; ``watermarks``: those of the planned batches, in milliseconds since 1970."""
    rows = [{"batch": batch, "watermark": _time(watermark)} for batch, watermark in sorted(watermarks.items())]
    return JobInput(stored, pa.Table.from_pylist(rows, schema=WATERMARK_SCHEMA))


def input_table(workload: Workload, acks: pa.Table, batches: Mapping[int, Mapping[int, tuple[int, int]]]) -> pa.Table:
    """The table ``input`` (INPUT_SCHEMA): the workload's committed rows where ``acks`` (ACK_SCHEMA) says that they lie.

    ``batches`` as in :class:`Evidence`.
    """
    found = select(INPUT, rows=committed_rows(workload), acks=acks, batches=batch_table(batches))
    return found.cast(INPUT_SCHEMA).combine_chunks()


def planned(workload: Workload) -> JobInput:
    """What a job will be given where nobody else writes to the topic and Spark cuts the batches as planned.

    The watermarks are those of a job that waits for no late event; a batch without data closes what is left open.
    """
    bounds = workload.batch_bounds()
    stored = input_table(workload, workload.planned_acks(), bounds)
    latest = {row["batch"]: _milliseconds(row["event_time_max"]) for row in _by_batch(stored).to_pylist()}
    events = (latest.get(batch, 0) for batch in range(len(bounds)))
    return job_input(stored, dict(enumerate(accumulate(events, max, initial=0))))


def truth(expectation: Expectation, given: JobInput) -> pa.Table:
    """The rows that a reader must get of what the job was given.

    Columns are int64, double, timestamp (microseconds, UTC) and text. Under a sink's KEY only one version of each key
    is left: the last arrival by (batch, source_offset), or one of those with the greatest ORDER.
    Raises ExpectationError.
    """
    found = versions(expectation, given)
    if expectation.latest:
        found = select(_latest(expectation, found), versions=found)
    return _without_places(found)


def truth_until(expectation: Expectation, given: JobInput, batch: int) -> pa.Table:
    """The truth over the input of the batches up to ``batch``, itself included; below 0 there are none."""
    return truth(expectation, given.until(batch))


def versions(expectation: Expectation, given: JobInput) -> pa.Table:
    """All rows of the expectation's result, with the places that it has: without a sink's KEY those of the truth, else
    every version of each key. Raises ExpectationError."""
    import duckdb  # see sql.select

    try:
        found = select(expectation.sql, LONGEST, input=given.input, batches=given.batches)
    except TimeoutError:
        raise ExpectationError(
            f"the expectation takes longer than {LONGEST:g} s over {given.input.num_rows} rows: join by equal columns, "
            "and bound what is recursive or a range"
        ) from None
    except duckdb.Error as error:
        raise ExpectationError(f"the expectation is no SQL that DuckDB runs: {_first_line(error)}") from None
    _check_columns(expectation, found.column_names)
    return pa.table({name: _plain(name, found[name]) for name in found.column_names})


def truth_schema(expectation: Expectation) -> pa.Schema:
    """The columns of the truth. Raises ExpectationError."""
    return truth(expectation, JobInput(INPUT_SCHEMA.empty_table(), WATERMARK_SCHEMA.empty_table())).schema


def check_expectation(expectation: Expectation, workload: Workload) -> pa.Schema:
    """The columns of the truth; ExpectationError if it would not be one for ``workload``."""
    given = planned(workload)
    found = versions(expectation, given)
    if not found.num_rows:
        raise ExpectationError("the expectation gives no row of this workload: nothing could be lost")
    if not same_rows(found, versions(expectation, given)):
        raise ExpectationError(
            "the expectation gives other rows when it is computed again: random(), uuid(), now() and the like are no "
            "function of the input"
        )
    for column in expectation.identity:
        if found[column].null_count:
            raise ExpectationError(
                f"column {column!r} of the expectation's result is null in places: a key is never null"
            )
    _check_unique(found, expectation.key, UNIQUE_MEND)
    if expectation.latest and not expectation.order and "source_offset" not in found.column_names:
        _check_unique(found, (*expectation.latest, "batch"), ARRIVAL_MEND)
    if expectation.latest and not expectation.order and "partition" in found.column_names:
        _check_ordered(found, expectation.latest)
    return _without_places(found).schema


def _without_places(found: pa.Table) -> pa.Table:
    return found.select([name for name in found.column_names if name not in PROVENANCE])


def _check_unique(found: pa.Table, names: Sequence[str], mend: str) -> None:
    different = found.group_by(list(names)).aggregate([]).num_rows
    if different < found.num_rows:
        raise ExpectationError(
            f"the expectation gives {found.num_rows} rows, but only {different} that differ in {', '.join(names)}: "
            f"{mend}"
        )


def _check_ordered(found: pa.Table, key: Sequence[str]) -> None:
    """Rows arrive in the order of their offsets within a partition of the source only."""
    places = found.group_by([*key, "batch", "partition"]).aggregate([])
    different = places.group_by([*key, "batch"]).aggregate([]).num_rows
    if different < places.num_rows:
        raise ExpectationError(
            f"rows of one {', '.join(key)} lie in several partitions of the source, so that none of them is the last "
            "arrival: give the sink ORDER, or a KEY whose rows lie in one partition"
        )


def all_versions(truth_table: pa.Table, evidence: Evidence) -> pa.Table:
    """What any reader may have been right to get at some time: the truth, or under a sink's KEY all versions."""
    return versions(evidence.expectation, evidence.given) if evidence.expectation.latest else truth_table


def right_versions(truth_table: pa.Table, evidence: Evidence) -> pa.Table:
    """What a reader may get now: the truth and, under a sink's ORDER, the other versions that are equal in it."""
    return _with_equals(truth_table, evidence.expectation, evidence.given)


def right_versions_until(expectation: Expectation, given: JobInput, batch: int) -> pa.Table:
    """What a reader may get once the batches up to ``batch`` are written, and no other."""
    until = given.until(batch)
    return _with_equals(truth(expectation, until), expectation, until)


def _with_equals(truth_table: pa.Table, expectation: Expectation, given: JobInput) -> pa.Table:
    if not expectation.latest or not expectation.order:
        return truth_table
    same = equal("v", "t", [*expectation.latest, expectation.order])
    names = ", ".join(f"v.{quoted(name)}" for name in truth_table.column_names)
    statement = f"SELECT {names} FROM versions v JOIN truth t ON {same}"
    return select(statement, versions=versions(expectation, given), truth=truth_table)


def _latest(expectation: Expectation, found: pa.Table) -> str:
    """The statement that leaves one version of each key. Ties are broken by arrival, then by all that a row says."""
    arrival = [f"{quoted(name)} DESC NULLS FIRST" for name in ARRIVAL if name in found.column_names]
    order = [f"{quoted(expectation.order)} DESC NULLS LAST"] if expectation.order else []
    rest = [quoted(name) for name in found.column_names if name not in ARRIVAL]
    key = ", ".join(quoted(name) for name in expectation.latest or ())
    turn = f"row_number() OVER (PARTITION BY {key} ORDER BY {', '.join([*order, *arrival, *rest])})"
    by = ", ".join(quoted(name) for name in found.column_names)
    return f"SELECT * FROM versions QUALIFY {turn} = 1 ORDER BY {by}"


def _check_columns(expectation: Expectation, names: list[str]) -> None:
    shown = ", ".join(names)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise ExpectationError(
            f"the expectation's result has two columns {twice!r}: give one of them another name (AS)"
        )
    for name in names:
        if name.lower() in RESERVED:
            raise ExpectationError(
                f"the expectation's result has a column {name!r}, which we use: call it otherwise (AS)"
            )
    for name in expectation.key:
        if name not in names or name in PROVENANCE:
            raise ExpectationError(
                f"the expectation's result has no column {name!r} to tell its rows apart, but {shown}: select it, or "
                "name the columns that do in its first line, as in: -- key: customer, day"
            )
    for word, wanted in (
        ("KEY", expectation.latest or ()),
        ("ORDER", (expectation.order,) if expectation.order else ()),
    ):
        for name in wanted:
            if name not in names or name in PROVENANCE:
                raise ExpectationError(f"the sink's {word} names column {name!r}, but rows have {shown}")
    if expectation.latest and not expectation.order and "batch" not in names:
        raise ExpectationError(
            f"the sink's KEY asks for the last arrival of each key, but the expectation's result has only {shown}: "
            "select batch (and source_offset) too, or declare the sink's ORDER"
        )


def _plain(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column as one of the four types that rows are compared by."""
    kind = _plain_type(column.type)
    if kind is None:
        raise ExpectationError(
            f"column {name!r} of the expectation's result is of type {column.type}: "
            "cast it to BIGINT, DOUBLE, TIMESTAMP or VARCHAR"
        )
    zone = getattr(column.type, "tz", None)
    try:
        plain = (column.cast(pa.timestamp("us", "UTC")) if zone else column).cast(kind)
    except pa.ArrowInvalid as error:
        raise ExpectationError(
            f"column {name!r} of the expectation's result is of type {column.type} and does not fit in {kind} "
            f"({_first_line(error)}): cast it to VARCHAR"
        ) from None
    if pa.types.is_timestamp(kind) and not _in_years(plain):
        raise ExpectationError(
            f"column {name!r} of the expectation's result has a time outside of the years 1 to 9999, such as infinity: "
            "keep it within them, or cast it to VARCHAR"
        )
    return plain


def _in_years(times: pa.ChunkedArray) -> bool:
    """Whether all of them are times that Python, and most sinks, can hold."""
    bounds = pc.min_max(times.cast(pa.int64())).as_py()
    return bounds["min"] is None or (bounds["min"] >= EARLIEST and bounds["max"] <= LATEST)


def _plain_type(kind: pa.DataType) -> pa.DataType | None:
    types = pa.types
    if types.is_integer(kind) or (types.is_decimal(kind) and kind.scale == 0):
        return pa.int64()
    if types.is_floating(kind) or types.is_decimal(kind):
        return pa.float64()
    if types.is_string(kind) or types.is_large_string(kind):
        return pa.string()
    if types.is_timestamp(kind) or types.is_date(kind):
        return pa.timestamp("us")
    return None


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split("\n\n")[0].split())


def _time(milliseconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).replace(tzinfo=None)
    except (ValueError, OverflowError, OSError) as error:
        raise ExpectationError(
            f"the watermark {milliseconds} of a batch, in milliseconds since 1970, is outside of the years 1 to 9999: "
            "let the job keep its event times within them"
        ) from error


def _milliseconds(time: datetime) -> int:
    return round(time.replace(tzinfo=UTC).timestamp() * 1000)


def _by_batch(stored: pa.Table) -> pa.Table:
    """The latest event of each batch."""
    return stored.group_by("batch").aggregate([("event_time", "max")])
