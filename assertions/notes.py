"""Notes of a verdict: what was seen and should be known, though it breaks nothing that the sink claims."""

from __future__ import annotations

from .checkers.torn import torn_batches
from .model import Evidence


def notes(evidence: Evidence) -> list[str]:
    """One sentence each."""
    return _torn(evidence) + _failed(evidence) + _hidden(evidence)


def _torn(evidence: Evidence) -> list[str]:
    if evidence.atomic:
        return []
    return [f"{torn}: the sink does not claim otherwise (ATOMIC)" for torn in torn_batches(evidence)]


def _failed(evidence: Evidence) -> list[str]:
    failed = [glimpse for glimpse in evidence.glimpses if glimpse.error is not None]
    if not failed:
        return []
    return [f"{len(failed)} readings while the job was under way failed; the last one: {failed[-1].error}"]


def _hidden(evidence: Evidence) -> list[str]:
    """Rows that lie in the target and that the sink's read does not give. A key is a right way to hide them."""
    read = [reading.rows.num_rows for reading in evidence.readings if reading.rows is not None]
    lying = sum(evidence.raw.values())
    if not read or lying <= read[-1]:
        return []
    where = ", ".join(f"{place} {rows}" for place, rows in evidence.raw.items() if rows)
    return [f"read() hides {lying - read[-1]} of {lying} rows (in the target lie: {where})"]
