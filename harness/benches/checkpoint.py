"""What being recoverable costs a batch: its plan, the log of offsets, the state's commit, the log of commits.

The input comes at a steady rate, so a longer trigger interval makes larger batches, and fewer of them.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...assertions import LARGE_BATCH, Workload
from ..errors import UsageError
from ..jobs import find_job
from ..request import Request
from ..session import Session
from ..state_stores import STATE_STORES, StateStoreName
from .progress import Batch, batches

JOB, SINK = "running_sum", "postgres_upsert"
BATCHES = 7
MOST_ROWS = 10_000
PARTS = ("plan", "offsets_log", "state_commit", "commit_log")


class Case(NamedTuple):
    """What is varied; ``interval`` in seconds."""

    store: StateStoreName
    interval: float


@dataclass(frozen=True)
class Measured:
    """The batches of one case; the first, which warms the JVM up, the large and the last are left out."""

    case: Case
    rows: int
    batches: Sequence[Batch]

    def median(self, part: str) -> float:
        return float(statistics.median(getattr(batch, part) for batch in self.batches))

    @property
    def share(self) -> float:
        """Of a batch's time, what went into its checkpoint."""
        return sum(batch.checkpoint for batch in self.batches) / sum(batch.seconds for batch in self.batches)


def request_of(case: Case, rate: int) -> Request:
    """``rate`` in rows a second. Raises UsageError for batches that are too small or too large."""
    rows = round(rate * case.interval)
    if not 1 <= rows <= MOST_ROWS:
        given = f"--interval {case.interval:g} with --rate {rate}"
        raise UsageError(f"{given} makes batches of {rows} rows: give what makes 1 to {MOST_ROWS}")
    return Request(
        SINK,
        workload=Workload(batches=BATCHES, rows=rows),
        conf=STATE_STORES[case.store],
        job=str(find_job(JOB).path),
        trigger=f"processingTime={round(case.interval * 1000)} milliseconds",
    )


def measure(session: Session, cases: Sequence[Case], rate: int, done: Callable[[Measured], None]) -> list[Measured]:
    """A trial of each case; see :func:`request_of`."""
    found = []
    for case in cases:
        request = request_of(case, rate)
        counted = [one for one in batches(session, request) if one.number not in (0, LARGE_BATCH, BATCHES - 1)]
        found.append(Measured(case, request.workload.rows, counted))
        done(found[-1])
    return found
