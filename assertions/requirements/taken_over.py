"""Another driver took the place of one that had been stopped, and that never went on."""

from __future__ import annotations

from ..successors import kept_out, refused, taken_over
from ..traces import Found, Struck


def check(struck: Struck) -> Found:
    """It was handed the batch before the first one's death, or the sink kept it out for as long as that stood still.
    Asked of the pause, and of the kill that follows it."""
    required = "another driver is handed the batch while the first one stands still"
    pause = struck if struck.action.until is not None else Struck(struck.traces, struck.number - 1)
    if taken_over(pause):
        return Found(required, "it was handed the batch, and the first one did not go on")
    if kept_out(pause):
        return Found(required, "the sink kept it out until the first one was dead")
    if refused(pause):
        return Found(required, "the sink refused it, and let it in once the first one was dead")
    return Found(required, None, "no other driver was handed the batch, or seen to be kept out by the sink")
