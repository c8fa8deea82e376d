"""Set logic over Arrow tables in DuckDB: one statement, its tables by name, an Arrow table back."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from .model import Evidence

BATCH_SCHEMA = pa.schema(
    [("batch", pa.int64()), ("partition", pa.int32()), ("first_offset", pa.int64()), ("end_offset", pa.int64())]
)

SAME = " AND ".join(
    f"o.{column} IS NOT DISTINCT FROM t.{column}" for column in ("key", "value", "event_time", "payload")
)
"""Whether observed row ``o`` says the same as true row ``t`` of its id; null is equal to null only."""

PLACES = """
SELECT a.id, a.partition, a."offset", a.committed, b.batch
FROM acks a LEFT JOIN batches b
  ON a.partition = b.partition AND a."offset" >= b.first_offset AND a."offset" < b.end_offset
"""

LOCATED = """
SELECT p.batch, p.partition, p."offset", p.committed, f.*
FROM found f LEFT JOIN places p ON f.id = p.id
ORDER BY ALL NULLS LAST
"""


def select(statement: str, **tables: pa.Table) -> pa.Table:
    """Run one SELECT over ``tables``."""
    import duckdb  # not above: it takes a while to load, and most commands judge nothing

    with duckdb.connect(":memory:") as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return connection.sql(statement).to_arrow_table()


def places(evidence: Evidence) -> pa.Table:
    """Where each record of the input lies: id, partition, offset, committed, and its batch (null: in none)."""
    return select(PLACES, acks=evidence.acks, batches=batch_table(evidence.batches))


def batch_table(batches: Mapping[int, Mapping[int, tuple[int, int]]]) -> pa.Table:
    rows = [
        {"batch": batch, "partition": partition, "first_offset": first, "end_offset": end}
        for batch, bounds in batches.items()
        for partition, (first, end) in bounds.items()
    ]
    return pa.Table.from_pylist(rows, schema=BATCH_SCHEMA)


def locate(found: pa.Table, evidence: Evidence) -> pa.Table:
    """``found`` (with a column id) with batch, partition, offset and committed, in the order of the input."""
    return select(LOCATED, found=found, places=places(evidence))
