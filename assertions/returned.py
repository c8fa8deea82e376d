"""A driver that was taken for dead, stood still, and went on when another one had its batch: what it wrote then.

The target is read where the other driver's commit of the batch lets it go on. What a reader got there, and does not get
at the end, is its doing, if nobody else was handed the batch after that.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from .journal import hand_overs
from .model import Event, Evidence


def since_it_went_on(batch: int, evidence: Evidence, now: int, counted: Callable[[pa.Table], int], what: str) -> str:
    """``; 576 of these copies came once driver local:1, which had been taken for dead, went on``: how many there are
    ``now``, less those that ``counted`` finds in what was read before. Empty if there are no more, or if it is not
    known that this driver alone may have changed rows of the batch since."""
    driver, read = _returned(batch, evidence)
    more = now - counted(read) if read is not None else 0
    return f"; {more} of {what} driver {driver}, which had been taken for dead, went on" if more > 0 else ""


def _returned(batch: int, evidence: Evidence) -> tuple[str, pa.Table | None]:
    """The driver by its process, and what was last read before it went on, with the batch committed by another one."""
    last = max((hand_over.index for hand_over in hand_overs(evidence.journal, batch)), default=len(evidence.journal))
    for index, event in enumerate(evidence.journal):
        if event["event"] == "resumed" and last < index and _of_a_driver(event, evidence):
            before = [one for one in evidence.glimpses if last < one.event_index < index and one.rows is not None]
            if before and before[-1].committed is not None and before[-1].committed >= batch:
                return str(event.get("process")), before[-1].rows
    return "", None


def _of_a_driver(resumed: Event, evidence: Evidence) -> bool:
    actions = (record.action for record in evidence.faults[resumed["fault"]].actions)
    return any((action.name, action.target) == ("pause", "driver") for action in actions)
