"""A driver ended before the batch was in the offset log, or nothing binds a replay to that log: it is planned again."""

from __future__ import annotations

from ..journal import is_at
from ..traces import Found, Struck

REPLAY = True


def check(struck: Struck) -> Found:
    """The batch is planned by a new run, or, where only the ends of epochs are reported, comes to its end in it."""
    required = f"batch {struck.batch} is planned by the new run"
    for _, event in struck.new_points(struck.confirmed_at):
        planned = is_at(event, "batch.offsets") or is_at(event, "sink.write", "before") or is_at(event, "batch.commit")
        if planned and event.get("batch") == struck.batch:
            return Found(required, f"run {event['run']} planned batch {struck.batch}")
    return Found(required, None, f"no other run planned batch {struck.batch}")
