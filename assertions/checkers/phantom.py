"""Phantom: a reader gets a row that the ground truth does not have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..causes import written_by
from ..model import Anomaly, Evidence
from ..relations import locate, select
from ._records import distinct, first_records, place

STRANGERS = "SELECT o.* FROM observed o WHERE o.id IS NULL OR o.id NOT IN (SELECT id FROM truth)"


def check(truth: pa.Table, observed: pa.Table, evidence: Evidence) -> Anomaly | None:
    """Each observed row has the id of a committed row of the input.

    Found here: rows of aborted transactions, ids that were never written, rows without an id that can be read.
    """
    found = select(STRANGERS, truth=truth, observed=observed)
    if not found.num_rows:
        return None
    located = locate(found, evidence)
    return Anomaly(
        kind="phantom",
        count=found.num_rows,
        records=[_record(row, evidence) for row in first_records(located)],
        batches=distinct(located, "batch"),
        partitions=distinct(located, "partition"),
        causes=_causes(located),
    )


def _record(row: Mapping[str, Any], evidence: Evidence) -> dict[str, Any]:
    aborted = row["committed"] is not None
    return place(row) | {
        "seen": {name: row[name] for name in ("key", "value", "event_time", "payload")},
        "aborted": aborted,
        "written_by": written_by(row["batch"], evidence),
    }


def _causes(located: pa.Table) -> list[str]:
    without_id = located["id"].null_count
    aborted = len(located) - located["committed"].null_count
    unknown = len(located) - without_id - aborted
    ids = pc.count_distinct(located["id"].filter(pc.is_valid(located["committed"]))).as_py()
    sentences = {
        f"rows of {ids} records in aborted transactions of the input are there ({aborted} in all): "
        "the job or its reader reads uncommitted data": aborted,
        f"{unknown} rows have an id that was never written to the source": unknown,
        f"{without_id} rows have no id that can be read: they are no rows under test, or not decodable": without_id,
    }
    return [sentence for sentence, count in sentences.items() if count]
