"""The tables that a trial is judged by, and the types of their columns. Times are UTC without a zone."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

ROW_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("key", pa.string()),
        ("value", pa.float64()),
        ("event_time", pa.timestamp("us")),
        ("payload", pa.string()),
    ]
)
"""Rows of the input: event_time is UTC without a zone."""

ACK_SCHEMA = pa.schema(
    [("id", pa.int64()), ("partition", pa.int32()), ("offset", pa.int64()), ("committed", pa.bool_())]
)
"""Each record of the workload with the broker's acknowledged place; committed is False in an aborted transaction."""

INPUT_SCHEMA = pa.schema([*ROW_SCHEMA, ("partition", pa.int32()), ("source_offset", pa.int64()), ("batch", pa.int64())])
"""Rows of the input with their place; batch is null where the job has planned no batch with it."""

WATERMARK_SCHEMA = pa.schema([("batch", pa.int64()), ("watermark", pa.timestamp("us"))])
"""Each planned batch with the watermark that it had."""


@dataclass(frozen=True)
class JobInput:
    """What a job was given: the tables ``input`` (INPUT_SCHEMA) and ``batches`` (WATERMARK_SCHEMA)."""

    input: pa.Table
    batches: pa.Table

    def until(self, batch: int) -> JobInput:
        """Of the batches up to this one, itself included."""
        return JobInput(_until(self.input, batch), _until(self.batches, batch))


def _until(stored: pa.Table, batch: int) -> pa.Table:
    return stored.filter(pc.fill_null(pc.less_equal(stored["batch"], batch), False))
