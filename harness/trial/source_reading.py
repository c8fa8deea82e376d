"""How a trial's drivers are told to read the source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass
class SourceReading:
    """Implements :class:`onceproof.faults.capabilities.Source`, and records what it changes (``source.repartitioned``).

    ``partitions``: at least so many, and so many by default; None for as many as the topic has, and Spark's default.
    """

    record: Callable[[str, Mapping[str, Any]], None]
    partitions: int | None = None

    def repartition(self, partitions: int) -> str:
        self.partitions = partitions
        self.record("source.repartitioned", {"partitions": partitions})
        return f"the drivers that follow read the source in at least {partitions} partitions"

    @property
    def arguments(self) -> tuple[str, ...]:
        """Those of the job. One whose source is read as it is need not know them."""
        return () if self.partitions is None else ("--min-partitions", str(self.partitions))

    @property
    def properties(self) -> dict[str, str]:
        """Those of Spark."""
        return {} if self.partitions is None else {"spark.default.parallelism": str(self.partitions)}
