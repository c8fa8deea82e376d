"""A thread was kept: until another reported the point that it was kept for, or it goes on, or fails of it."""

from __future__ import annotations

from ..traces import Found, Struck
from . import goes_on


def check(struck: Struck) -> Found:
    """The point for which the thread was kept was reported meanwhile: what becomes of it then is not asked, since its
    process may have been ended. One that was let go before goes on; or its driver, who did not want to wait for so
    long, has ended by an error of its own."""
    late = struck.journal[struck.fired_at :]
    for event in late:
        if event["event"] == "resumed" and event.get("fault") == struck.traces.number and event.get("reached"):
            return Found("the point for which the thread was kept", "it was reported while the thread was kept")
    found = goes_on.check(struck)
    ended = next((event for event in late if event["event"] == "driver.exited"), None)
    if found.seen is None and ended is not None and not ended.get("planned"):
        return Found(found.required, f"the driver ended by itself with code {ended.get('code')} meanwhile")
    return found
