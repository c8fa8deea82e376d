"""What a plan had stopped was let go at a point of another fault: it had been stopped by then, and it goes on."""

from __future__ import annotations

from ..traces import Found, Struck
from . import goes_on


def check(struck: Struck) -> Found:
    """What else is done at that point, such as a kill of another broker, counts on it that the process stands still."""
    found = goes_on.check(struck)
    if _was_stopped(struck):
        return found
    missing = "it was stopped only when this had been reached: what lies in between was not as planned"
    return Found(found.required, None, missing)


def _was_stopped(struck: Struck) -> bool:
    """Whether it was before the point was reached."""
    reached = struck.traces.of("fault.reached")
    before = struck.journal[: reached[0][0] if reached else struck.fired_at]
    return any(event["event"] == "process.paused" and event.get("target") == struck.action.target for event in before)
