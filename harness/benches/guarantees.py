"""What a guarantee costs: throughput and latency of the reference sinks, without a fault."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...assertions import LARGE_BATCH, Workload
from ..request import Request
from ..session import Session
from ..sinks import find_sink, literals
from .progress import Batch, batches

SINKS = (
    "kafka_append", "kafka_compacted", "kafka_marker", "kafka_transactional",
    "postgres_append", "postgres_upsert", "postgres_ledger", "postgres_masked", "postgres_prepared",
    "redis_append", "redis_upsert", "redis_ledger",
    "file_manifest", "file_rename", "wal_committer",
)  # fmt: skip
BATCHES = 7


@dataclass(frozen=True)
class Measured:
    """A sink's batches over all trials. ``technique`` and ``claim`` as its file has them."""

    sink: str
    technique: str
    claim: str
    trials: Sequence[Sequence[Batch]]

    @property
    def throughput(self) -> float:
        """Rows a second in the large batch, median over the trials."""
        large = [batch for trial in self.trials for batch in trial if batch.number == LARGE_BATCH]
        return float(statistics.median(batch.rows / batch.seconds for batch in large))

    @property
    def latency(self) -> float:
        """Seconds that a small batch takes: median of those behind the large one."""
        return float(
            statistics.median(one.seconds for trial in self.trials for one in trial if one.number > LARGE_BATCH)
        )


def request_of(sink: str, rows: int) -> Request:
    """A trial of the sink; small batches have about ``rows`` rows."""
    return Request(sink, workload=Workload(batches=BATCHES, rows=rows))


def measure(
    session: Session, sinks: Sequence[str], rows: int, repeat: int, done: Callable[[Measured], None]
) -> list[Measured]:
    """``repeat`` trials of each sink; small batches have about ``rows`` rows, the large one eight times as many."""
    found = []
    for sink in sinks:
        request = request_of(sink, rows)
        constants = literals(find_sink(sink))
        trials = [batches(session, request) for _ in range(repeat)]
        found.append(Measured(sink, constants.get("TECHNIQUE", ""), constants["GUARANTEE"], trials))
        done(found[-1])
    return found
