"""An error was raised in the stopped thread, or a client got one: it gets through to the engine, or the sink or its
client swallows it."""

from __future__ import annotations

from ..journal import is_at
from ..model import Event
from ..traces import Found, Struck
from ._tasks import named

ABORTS = ("task.abort", "sink.abort")
"""Phases that an error alone leads to."""


def check(struck: Struck) -> Found:
    """The driver ends, or a task is attempted again. Or the batch goes on as if nothing had been: then the error was
    swallowed, which is evidence too, and the rows decide."""
    required, seen = "the engine sees the error, or the sink or its client swallows it", _engine_saw(struck)
    swallowed = "swallowed by the sink or its client: neither the driver nor a task failed of it"
    return Found(required, seen or swallowed, swallowed=seen is None)


def _engine_saw(struck: Struck) -> str | None:
    """The first thing after the error that shows that it got through; None if the batch went on as if nothing had been.

    What comes after the batch's end, or after a planned kill, is not of this error.
    """
    ended, attempts = False, _attempts_before(struck)
    for event in struck.journal[struck.fired_at + 1 :]:
        if event["event"] == "point" and event.get("phase") in ABORTS and event.get("batch") == struck.batch:
            return f"{event['phase']} was called"
        if event["event"] == "query.ended" and struck.batch is not None:
            ended = True
        if event["event"] == "driver.hung" and ended:
            return "the query ended, though its driver did not"
        if event["event"] == "driver.exited":
            saw = f"the driver ended with code {event.get('code')}: {event.get('error') or 'no exception found'}"
            return None if event.get("planned") or event.get("code") == 0 else saw
        if event["event"] == "point" and event.get("batch") == struck.batch and struck.batch is not None:
            if is_at(event, "sink.write", "after") or is_at(event, "batch.commit"):
                return None
            if "attempt" in event and event["attempt"] > attempts.get(_task(event), 0):
                return f"attempt {event['attempt']} of {named(event)} ran afterwards"
            if is_at(event, "sink.write", "before") and event.get("run") != struck.point.get("run"):
                return f"run {event.get('run')} handed batch {struck.batch} over again"
    return None


def _attempts_before(struck: Struck) -> dict[tuple[object, ...], int]:
    """The highest attempt of each task that was seen before the error; a first attempt afterwards is no second."""
    found: dict[tuple[object, ...], int] = {}
    for event in struck.journal[: struck.fired_at]:
        if event["event"] == "point" and "attempt" in event:
            found[_task(event)] = max(event["attempt"], found.get(_task(event), 0))
    return found


def _task(event: Event) -> tuple[object, ...]:
    return tuple(event.get(name) for name in ("batch", "partition", "stage", "process"))
