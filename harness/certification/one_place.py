"""Sinks that write to the same place in each trial: side by side, one removes or reads the rows of the other."""

from __future__ import annotations

from collections.abc import Iterable

from .trace import Event

FOUND = "target.found"
"""The event of a trial whose sink writes to a system of the user's own: how many rows were there before ``prepare``."""

NOTE = (
    "each trial of this sink writes to the same place: rows of another one were there before prepare; so trials ran "
    "one after the other. Name what it writes to by target.name"
)


def may_be_one(trace: Iterable[Event]) -> bool:
    """Until a second trial has looked, nobody knows."""
    return any(event["event"] == FOUND for event in trace)


def is_cleaned(trace: Iterable[Event]) -> bool:
    """Whether nobody will ever know: the sink removes what a second trial would find."""
    return any(event["event"] == FOUND and event["cleaned"] for event in trace)


def is_one(*traces: Iterable[Event]) -> bool:
    return any(event["event"] == FOUND and event["rows"] for trace in traces for event in trace)
