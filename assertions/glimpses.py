"""Questions to the readings that were taken while the job was under way.

Such a reading may show the ground truth over all batches before the one in flight, or with it: the sink may have
written the batch already, or not yet.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from .model import Evidence, Glimpse
from .sql import quoted
from .truth import right_versions_until
from .truth import truth_until as truth_of_batches


def truth_until(evidence: Evidence, batch: int) -> pa.Table:
    """What a reader must see once ``batch`` is committed and no later one has begun; nothing below 0."""
    return truth_of_batches(evidence.expectation, evidence.given, batch)


def newest(glimpse: Glimpse) -> int | None:
    """The last batch of which a reader may have seen rows."""
    known = [batch for batch in (glimpse.committed, glimpse.handed_over) if batch is not None]
    return max(known, default=None)


def right_until(evidence: Evidence, batch: int) -> pa.Table:
    """Rows that a reader may get once ``batch`` is committed and no later one has begun: under a sink's ORDER there are
    more of them than in the truth, since among equals any is right."""
    return right_versions_until(evidence.expectation, evidence.given, batch)


def listed(columns: Sequence[str]) -> str:
    return ", ".join(map(quoted, columns))
