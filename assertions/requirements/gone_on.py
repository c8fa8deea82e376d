"""A driver ended after the batch was in the commit log: the next one goes on behind it."""

from __future__ import annotations

from collections.abc import Sequence

from ..model import Event
from ..traces import Found, Struck

REPLAY = True


def check(struck: Struck) -> Found:
    """The batch never comes again, and the next one does by a new run, or that has nothing left to do."""
    start, batch = struck.confirmed_at, struck.batch
    assert batch is not None  # declared with in_batch
    required = (
        f"batch {batch} is never handed over again, and batch {batch + 1} is by the new run, or that ends cleanly"
    )
    if struck.new_hand_overs(start, batch):
        return Found(required, None, f"batch {batch} was handed over again though it was committed")
    for hand_over in struck.new_hand_overs(start, batch + 1):
        return Found(required, f"run {hand_over.run} ({hand_over.process}) went on with batch {batch + 1}")
    others = (event for _, event in struck.new_points(start))
    if (event := next(others, None)) and _clean_end(struck.journal, start):
        by = f"run {event['run']} ({event.get('process')})"
        return Found(required, f"{by} had nothing left to do and ended cleanly")
    if struck.record.runs_on and _clean_end(struck.journal, struck.fired_at):
        return Found(required, "the driver itself went on to the end of its input, and ended cleanly")
    return Found(required, None, "no other run went on or ended cleanly")


def _clean_end(journal: Sequence[Event], start: int) -> bool:
    """Whether a driver got to its input's end: one that stayed had nothing left to do, and was ended for that."""
    ends = (event for event in journal[start:] if event["event"] in ("driver.exited", "driver.stayed"))
    return any(event["event"] == "driver.stayed" or event.get("code") == 0 for event in ends)
