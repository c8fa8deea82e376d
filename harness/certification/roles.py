"""The batches at which a sweep strikes: each has a role, because sinks go wrong in different ones."""

from __future__ import annotations

from ...assertions import Workload
from ..errors import UsageError

FIRST, MIDDLE, LAST = "first", "middle", "last"


def batch_roles(workload: Workload, chosen: int | None = None) -> dict[str, int]:
    """Roles and their batches: first, second, middle, quiet (one task of it has no rows) and last, each batch once.

    ``chosen`` is the only batch that is asked for; it is then the middle one. Raises UsageError for a batch that the
    workload does not have.

    >>> batch_roles(Workload())
    {'first': 0, 'second': 1, 'middle': 2, 'quiet': 3, 'last': 4}
    >>> batch_roles(Workload(batches=3))
    {'first': 0, 'middle': 1, 'last': 2}
    """
    if chosen is not None:
        check_batch(chosen, workload)
        return {MIDDLE: chosen}
    last = workload.batches - 1
    wanted = {FIRST: 0, LAST: last, "quiet": workload.quiet_batch, MIDDLE: last // 2, "second": 1}
    found: dict[str, int] = {}
    for role, batch in wanted.items():
        if batch is not None and batch <= last and batch not in found.values():
            found[role] = batch
    if MIDDLE not in found:  # a workload of one or two batches
        found = {(MIDDLE if batch == last // 2 else role): batch for role, batch in found.items()}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def check_batch(batch: int, workload: Workload) -> None:
    """Raises UsageError for a batch that the workload does not have."""
    if not 0 <= batch < workload.batches:
        raise UsageError(f"--batch {batch} is beyond the workload: it has batches 0 to {workload.batches - 1}")
