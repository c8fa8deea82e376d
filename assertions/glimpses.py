"""Questions to the readings that were taken while the job was under way.

Such a reading may show the ground truth over all batches before the one in flight, or with it: the sink may have
written the batch already, or not yet.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from .model import Evidence, Glimpse
from .sql import quoted, select
from .truth import truth_until as truth_of_batches

MISSING = """
SELECT {columns} FROM expected EXCEPT SELECT {columns} FROM seen
"""

SURPLUS = """
SELECT {columns} FROM seen EXCEPT ALL SELECT {columns} FROM expected
"""


def truth_until(evidence: Evidence, batch: int | None) -> pa.Table:
    """What a reader must see once ``batch`` is committed and no later one has begun; nothing for None."""
    if batch is None:
        return evidence.truth.schema.empty_table()
    return truth_of_batches(evidence.expectation, evidence.input, batch)


def newest(glimpse: Glimpse) -> int | None:
    """The last batch of which a reader may have seen rows."""
    known = [batch for batch in (glimpse.committed, glimpse.handed_over) if batch is not None]
    return max(known, default=None)


def rows_of_batch(evidence: Evidence, batch: int) -> pa.Table:
    """What ``batch`` adds to the ground truth."""
    before = truth_until(evidence, batch - 1 if batch else None)
    return missing_in(before, truth_until(evidence, batch))


def missing_in(seen: pa.Table, expected: pa.Table) -> pa.Table:
    """Rows of ``expected`` of which ``seen`` has no exact copy."""
    return select(MISSING.format(columns=listed(expected.column_names)), seen=seen, expected=expected)


def surplus_in(seen: pa.Table, expected: pa.Table) -> pa.Table:
    """Rows of ``seen`` beyond those of ``expected``, each as often as it is one too many."""
    return select(SURPLUS.format(columns=listed(expected.column_names)), seen=seen, expected=expected)


def shortcomings(evidence: Evidence, glimpse: Glimpse) -> list[str]:
    """Why a reading does not show the ground truth over the batches that were committed then, each row once, with
    nothing of it held back by an open transaction; none if it does. A later batch that is in flight may be seen too.
    """
    if glimpse.rows is None:
        return [f"reading {glimpse.number} failed: {glimpse.error}"]
    missing = missing_in(glimpse.rows, truth_until(evidence, glimpse.committed)).num_rows
    surplus = surplus_in(glimpse.rows, truth_until(evidence, newest(glimpse))).num_rows
    found = [f"{missing} rows are not there"] if missing else []
    found += [f"{surplus} rows are there that should not be, or more often than once"] if surplus else []
    found += [f"{one.kind} transaction {one.name} is {one.state}" for one in glimpse.opened]
    return [f"reading {glimpse.number} ({glimpse.at}): {one}" for one in found]


def listed(columns: Sequence[str]) -> str:
    return ", ".join(map(quoted, columns))
