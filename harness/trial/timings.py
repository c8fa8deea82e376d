"""A trial's time by stage, from its stopwatch and its journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def stages(watch: Mapping[str, float], events: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Seconds by stage, in order, and in all.

    A driver's start lasts from its process to its query's start; recovery starts are those of all later drivers. What
    remains of the act is the run.
    """
    starts = _driver_starts(events)
    first, recovery = sum(starts[:1]), sum(starts[1:])
    seconds = {
        "arrange": watch.get("arrange", 0.0),
        "first driver start": first,
        "run": max(watch.get("act", 0.0) - first - recovery, 0.0),
        "recovery start": recovery,
        "settle": watch.get("settle", 0.0),
        "judge": watch.get("judge", 0.0),
    }
    seconds["total"] = sum(seconds.values())
    return {stage: round(value, 3) for stage, value in seconds.items()}


def _driver_starts(events: Sequence[Mapping[str, Any]]) -> list[float]:
    found: list[float] = []
    started: float | None = None
    for event in events:
        if event["event"] == "driver.started":
            started = event["t"]
        elif event["event"] == "point" and event.get("phase") == "query.start" and started is not None:
            found.append(event["t"] - started)
            started = None
    return found
