"""A process was killed by itself: it is dead."""

from __future__ import annotations

from ..traces import Found, Struck


def check(struck: Struck) -> Found:
    """Its death was confirmed before anything went on. What follows from it, a task's next attempt, a new driver or an
    error, is not required: that depends on what it was to the job."""
    required = "the process that reached the point is confirmed dead"
    return Found(required, f"{struck.process} died" if struck.confirmed else None)
