"""Relations between what is true and what was observed, for any columns and key."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from .model import Evidence, Expectation
from .places import PLACES, batch_table
from .sql import equal, quoted, select
from .truth import PROVENANCE, versions

__all__ = ["has_key", "listed", "locate", "other_columns", "places", "same", "select"]


def places(evidence: Evidence) -> pa.Table:
    """Where each record of the input lies: id, partition, offset, committed, and its batch (null: in none)."""
    return select(PLACES, acks=evidence.acks, batches=batch_table(evidence.batches))


def locate(found: pa.Table, evidence: Evidence) -> pa.Table:
    """``found`` (with the job's key) with batch, partition, offset and committed, in the order of the input.

    Rows that are told apart by id lie where the record of that id does, be it an aborted one; others where the
    expectation's result says that they come from, if it does.
    """
    key = evidence.expectation.key
    table = places(evidence) if key == ("id",) else _places_by_key(evidence)
    statement = f"""
        SELECT p.batch, p.partition, p."offset", p.committed, f.*
        FROM found f LEFT JOIN places p ON {has_key("f", "p", key)}
        ORDER BY ALL NULLS LAST
    """
    return select(statement, found=found, places=table)


def has_key(one: str, other: str, key: Sequence[str]) -> str:
    """Whether two rows have the same key; one without a key has the same as none."""
    return " AND ".join(f"{one}.{quoted(name)} = {other}.{quoted(name)}" for name in key)


def same(one: str, other: str, table: pa.Table) -> str:
    """Whether two rows are equal in all columns of ``table``."""
    return equal(one, other, table.column_names)


def listed(row: str, names: Sequence[str], prefix: str = "") -> str:
    """``t."a" AS "expected_a", ...`` for ``prefix`` ``expected_``."""
    return ", ".join(f"{row}.{quoted(name)} AS {quoted(prefix + name)}" for name in names)


def other_columns(table: pa.Table, expectation: Expectation) -> list[str]:
    """All columns but those of the job's key."""
    return [name for name in table.column_names if name not in expectation.key]


def _places_by_key(evidence: Evidence) -> pa.Table:
    result = versions(evidence.expectation, evidence.given)
    types = {"partition": pa.int32(), "source_offset": pa.int64(), "batch": pa.int64()}
    nothing = {name: pa.nulls(result.num_rows, types[name]) for name in PROVENANCE if name not in result.column_names}
    for name, column in nothing.items():
        result = result.append_column(name, column)
    key = ", ".join(quoted(name) for name in evidence.expectation.key)
    statement = f'SELECT {key}, partition, source_offset AS "offset", TRUE AS committed, batch FROM result'
    return select(statement, result=result)
