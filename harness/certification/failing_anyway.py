"""Points at which a statement was to be reported as failed once it is done, and failed by itself in each try.

A sink removes what a dead driver may have left, and lets the error pass if there is nothing. Such a statement has done
nothing that could be reported as failed: the point is no part of the space, and is named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from .points import Space
from .results import PointResult, Store
from .trace import Event

REASON = "the statement fails there by itself"


def without_what_fails_anyway(space: Space, store: Store, journal: Callable[[PointResult], Sequence[Event]]) -> Space:
    """``journal`` is that of a result's trial."""
    left_out = [
        point
        for point in space.points
        if (result := store.get(point.text)) is not None
        and (result.verdict, result.reached, result.without_trial) == ("inconclusive", True, False)
        and any(event["event"] == "probe.not_raised" for event in journal(result))
    ]
    kept = tuple(point for point in space.points if point not in left_out)
    return replace(space, points=kept, impossible=(*space.impossible, *(point.gap(REASON) for point in left_out)))
