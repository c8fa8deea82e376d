"""Batches for which the sink is given nothing to write: what a job of windows has read may stay in its state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ...assertions import Evidence, load, same_rows
from ...assertions.glimpses import truth_until


def idle(directory: Path, roles: Mapping[str, int]) -> list[str]:
    """A sentence for each of these batches of a run without a fault; none where there was no such run."""
    try:
        evidence = load(directory)
    except ValueError:
        return []
    return [*_idle(evidence, roles)]


def _idle(evidence: Evidence, roles: Mapping[str, int]) -> Iterator[str]:
    for role, batch in roles.items():
        until, before = (truth_until(evidence, number) for number in (batch, batch - 1))
        if same_rows(until, before):
            yield (
                f"in batch {batch} ({role}) the job has no row to hand over: points there strike its recovery, and "
                "nothing that the sink writes"
            )
