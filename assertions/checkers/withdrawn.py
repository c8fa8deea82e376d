"""Withdrawn: a reader met a row while the job was under way that is gone later, for a while or for good."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..causes import first_sentences, hand_over_story
from ..glimpses import listed, truth_until
from ..model import Anomaly, Evidence, Glimpse
from ..relations import locate, select
from ..sql import equal
from ..truth import all_versions
from ._records import distinct, first_records, place

GONE = """
WITH met AS (SELECT {columns}, count(*) AS seen FROM glimpse GROUP BY ALL),
still AS (SELECT {columns}, count(*) AS kept FROM observed GROUP BY ALL)
SELECT {met}, {number} AS reading, {later} AS later, met.seen, coalesce(still.kept, 0) AS kept
FROM met LEFT JOIN still ON {same} WHERE met.seen > coalesce(still.kept, 0)
"""

WORST = """
SELECT * FROM gone QUALIFY row_number() OVER (PARTITION BY {columns} ORDER BY kept, seen DESC, reading, later) = 1
"""

AT_THE_END = 0
"""The number of the reading after the job's end, as what a later one is."""

NOT_REPLACED = """
SELECT g.* FROM gone g
WHERE NOT EXISTS (SELECT 1 FROM versions v WHERE {same_row})
    OR NOT EXISTS (SELECT 1 FROM observed o WHERE {same_key})
    OR (SELECT count(*) FROM glimpse m WHERE {met_key}) > 1
"""
"""Of the rows that are gone, those that are no version of their key, of whose key nothing is left, or of whose key the
reader met several rows."""


def check(truth: pa.Table, observed: pa.Table, evidence: Evidence) -> Anomaly | None:
    """Each row that a reading under way showed is there at the end as often as then; and it is in the next reading, if
    its batch is recorded as done by then.

    Where only further copies of rows are gone, the reader met duplicates. A row of which nothing is left leaves no
    guarantee. Where rows have a key, another version may have taken a row's place; whether that one was right then, and
    this one is now, is the question of *stale*.
    """
    found = _gone(observed, evidence)
    if not found.num_rows:
        return None
    located = locate(found, evidence)
    batches = distinct(located, "batch")
    vanished = pc.sum(pc.equal(found["kept"], 0)).as_py()
    return Anomaly(
        kind="withdrawn",
        count=pc.sum(pc.subtract(found["seen"], found["kept"])).as_py(),
        records=[_record(row, evidence) for row in first_records(located)],
        batches=batches,
        partitions=distinct(located, "partition"),
        causes=first_sentences(batches, (_cause(batch, located, evidence) for batch in batches))
        or [_sentence(located, evidence)],
        like=None if vanished else "duplicated",
    )


def _gone(observed: pa.Table, evidence: Evidence) -> pa.Table:
    """Rows that a reading had and a ``later`` one has not, or not as often: how many it had, and how many are kept."""
    versions = all_versions(evidence.truth, evidence)
    met = [glimpse for glimpse in evidence.glimpses if glimpse.rows is not None]
    found = [_gone_since(glimpse, AT_THE_END, observed, versions, evidence) for glimpse in met]
    for glimpse, later in pairwise(met):
        if later.committed is not None:
            gone = _gone_since(glimpse, later.number, later.rows, versions, evidence)
            found.append(_of_batches_done(gone, later.committed, evidence) if gone.num_rows else gone)
    if not found:
        return pa.table({"kept": pa.array([], pa.int64())})
    return select(WORST.format(columns=listed(observed.column_names)), gone=pa.concat_tables(found))


def _of_batches_done(gone: pa.Table, committed: int, evidence: Evidence) -> pa.Table:
    """Those of which nothing is left though they must be there: what is written of a batch in flight may be taken
    back and written again."""
    due = truth_until(evidence, committed)
    is_due = f"EXISTS (SELECT 1 FROM due d WHERE {equal('d', 'g', due.column_names)})"
    return select(f"SELECT g.* FROM gone g WHERE g.kept = 0 AND {is_due}", gone=gone, due=due)


def _gone_since(glimpse: Glimpse, later: int, rows: pa.Table, versions: pa.Table, evidence: Evidence) -> pa.Table:
    names = rows.column_names
    statement = GONE.format(
        columns=listed(names),
        met=", ".join(f'met."{name}"' for name in names),
        same=equal("met", "still", names),
        number=glimpse.number,
        later=later,
    )
    gone = select(statement, glimpse=glimpse.rows, observed=rows)
    return _replaced_left_out(gone, rows, glimpse, versions, evidence)


def _replaced_left_out(
    gone: pa.Table, observed: pa.Table, glimpse: Glimpse, versions: pa.Table, evidence: Evidence
) -> pa.Table:
    if not evidence.expectation.latest or not gone.num_rows:
        return gone
    key = list(evidence.expectation.latest)
    statement = NOT_REPLACED.format(
        same_row=equal("v", "g", observed.column_names), same_key=equal("o", "g", key), met_key=equal("m", "g", key)
    )
    return select(statement, gone=gone, observed=observed, glimpse=glimpse.rows, versions=versions)


def _record(row: Mapping[str, Any], evidence: Evidence) -> dict[str, Any]:
    return place(row, evidence.expectation.identity) | {
        "expected": row["seen"],
        "seen": row["kept"],
        "reading": row["reading"],
    }


def _cause(batch: int, located: pa.Table, evidence: Evidence) -> str:
    of_batch = located.filter(pc.equal(located["batch"], batch))
    return f"{hand_over_story(batch, evidence)}; {_sentence(of_batch, evidence)}"


def _sentence(rows: pa.Table, evidence: Evidence) -> str:
    vanished = pc.sum(pc.equal(rows["kept"], 0)).as_py()
    first = rows.sort_by("reading").slice(0, 1).to_pylist()[0]
    what = f"{vanished} rows that are gone" if vanished else f"further copies of {rows.num_rows} rows that are gone"
    when = "at the end" if first["later"] == AT_THE_END else f"in {_named(first['later'], evidence)}"
    return f"a reader met {what} {when} ({_named(first['reading'], evidence)})"


def _named(number: int, evidence: Evidence) -> str:
    at = next(glimpse.at for glimpse in evidence.glimpses if glimpse.number == number)
    return f"reading {number}, {at}"
