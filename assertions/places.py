"""Where records of the input lie, and in which batch."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

BATCH_SCHEMA = pa.schema(
    [("batch", pa.int64()), ("partition", pa.int32()), ("first_offset", pa.int64()), ("end_offset", pa.int64())]
)

PLACES = """
SELECT a.id, a.partition, a."offset", a.committed, b.batch
FROM acks a LEFT JOIN batches b
  ON a.partition = b.partition AND a."offset" >= b.first_offset AND a."offset" < b.end_offset
"""


def batch_table(batches: Mapping[int, Mapping[int, tuple[int, int]]]) -> pa.Table:
    rows = [
        {"batch": batch, "partition": partition, "first_offset": first, "end_offset": end}
        for batch, bounds in batches.items()
        for partition, (first, end) in bounds.items()
    ]
    return pa.Table.from_pylist(rows, schema=BATCH_SCHEMA)
