"""A query was ended where no batch was under way: it starts again."""

from __future__ import annotations

from ..journal import runs
from ..traces import Found, Struck

REPLAY = True


def check(struck: Struck) -> Found:
    """A new run of the same query starts after the death; a moment before any run began has interrupted nothing."""
    required, start = "a new run of the same query starts", struck.confirmed_at
    if not struck.point and not runs(struck.journal, 0, start):
        return Found(required, None, "no run of the query had begun before: there was nothing to interrupt")
    for _, event in struck.new_points(start):
        return Found(required, f"run {event['run']} started in {event.get('process')}")
    return Found(required, None, "no other run was reported afterwards")
