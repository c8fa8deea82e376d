"""A driver that was taken for dead, stood still, and went on when another one had its batch: what it wrote then.

The target is read where the other driver's commit of the batch lets it go on. What a reader got there, and does not get
at the end, is its doing, if nobody else was handed the batch after that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from .journal import hand_overs
from .model import Event, Evidence, Glimpse


@dataclass(frozen=True)
class Returned:
    """The driver by its process, and the last reading before it went on."""

    process: str
    glimpse: Glimpse

    def since(self, now: int, counted: Callable[[pa.Table], int], what: str) -> str | None:
        """``576 of these copies came once driver local:1, which had been taken for dead, went on``: how many there are
        ``now``, less those that ``counted`` finds in what was read before."""
        assert self.glimpse.rows is not None
        more = now - counted(self.glimpse.rows)
        return f"{more} of {what} driver {self.process}, which had been taken for dead, went on" if more > 0 else None


def returned(batch: int, evidence: Evidence) -> Returned | None:
    """Who alone may have changed rows of ``batch`` after that had been committed by another driver; None: nobody, or it
    is not known."""
    last = max((hand_over.index for hand_over in hand_overs(evidence.journal, batch)), default=None)
    for index, event in enumerate(evidence.journal):
        if event["event"] == "resumed" and last is not None and last < index and _of_a_driver(event, evidence):
            before = [one for one in evidence.glimpses if last < one.event_index < index and one.rows is not None]
            if before and before[-1].committed is not None and before[-1].committed >= batch:
                return Returned(str(event.get("process")), before[-1])
    return None


def _of_a_driver(resumed: Event, evidence: Evidence) -> bool:
    actions = (record.action for record in evidence.faults[resumed["fault"]].actions)
    return any((action.name, action.target) == ("pause", "driver") for action in actions)
