"""What a recovery from a driver's death consists of, from the journal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from pydantic import BaseModel, Field

from ...documents import CLOSED

Event = Mapping[str, Any]


class Recovery(BaseModel):
    """From a fault that ended a driver to the commit of the first batch after it: seconds by part, one after the other.

    A task may load its state while another one writes: then ``load_state`` is a part of ``replay``'s time that is
    counted once, as loading.
    """

    model_config = CLOSED

    batch: int = Field(ge=0, description="the first batch that the new driver handed to the sink")
    detect: float = Field(ge=0, description="until the supervisor saw that the driver had ended")
    redeploy: float = Field(ge=0, description="until the new driver's query started: process, JVM, session, attach")
    reset_source: float = Field(ge=0, description="until the batch was handed to the sink: logs, offsets, planning")
    reset_sink: float = Field(ge=0, description="until its first task began, or, where none did, the hand-over's end")
    load_state: float = Field(ge=0, description="in which a task loaded state")
    replay: float = Field(ge=0, description="the rest, until the batch was in the commit log")
    total: float = Field(ge=0, description="all of these")

    @property
    def parts(self) -> dict[str, float]:
        """The parts in their order, without the total."""
        return {name.replace("_", " "): getattr(self, name) for name in PARTS}


PARTS = ("detect", "redeploy", "reset_source", "reset_sink", "load_state", "replay")


def recoveries_in(journal: Sequence[Event]) -> list[Recovery]:
    """One for each driver that a fault ended, and whose successor committed a batch."""
    ends = [index for index, event in enumerate(journal) if event["event"] == "driver.exited"]
    found = []
    for number, end in enumerate(ends):
        begin = ends[number - 1] + 1 if number else 0
        until = ends[number + 1] + 1 if number + 1 < len(ends) else len(journal)
        fired = [event["t"] for event in journal[begin:end] if event["event"] == "fault.fired"]
        if fired and (recovery := _recovery(fired[-1], journal[end]["t"], journal[end:until])) is not None:
            found.append(recovery)
    return found


def _recovery(fired: float, exited: float, after: Iterable[Event]) -> Recovery | None:
    """None where one of the parts did not come to its end. A paused driver may still report meanwhile, so each part is
    looked for behind the one before."""
    points = [event for event in after if event["event"] == "point"]
    started = _behind(points, ("query.start", "before"))
    handed_over = _behind(started, ("sink.write", "before"))
    of_batch = [event for event in handed_over if event.get("batch") == handed_over[0]["batch"]]
    working = _behind(of_batch, ("task.run", "before"), ("sink.write", "after"))
    committed = _behind(working, ("batch.commit", "after"))
    if not committed:
        return None
    times = (fired, exited, *(part[0]["t"] for part in (started, handed_over, working, committed)))
    detect, redeploy, reset_source, reset_sink, work = (later - earlier for earlier, later in pairwise(times))
    load_state = _covered(_loads(of_batch))
    return Recovery(
        batch=handed_over[0]["batch"],
        detect=round(detect, 3),
        redeploy=round(redeploy, 3),
        reset_source=round(reset_source, 3),
        reset_sink=round(reset_sink, 3),
        load_state=round(load_state, 3),
        replay=round(max(0.0, work - load_state), 3),
        total=round(times[-1] - fired, 3),
    )


def _behind(points: Sequence[Event], *steps: tuple[str, str]) -> Sequence[Event]:
    """The points from the first one on that is at one of these steps; none without one."""
    found = (at for at, event in enumerate(points) if (event["phase"], event.get("edge")) in steps)
    return points[next(found, len(points)) :]


def _loads(points: Iterable[Event]) -> list[tuple[float, float]]:
    """When each task began to load a store, and when it had."""
    begun: dict[tuple[object, ...], float] = {}
    found = []
    for event in points:
        if event["phase"] != "state.load":
            continue
        task = tuple(event.get(name) for name in ("process", "thread", "task", "operator", "store"))
        if event["edge"] == "before":
            begun[task] = event["t"]
        elif task in begun:
            found.append((begun.pop(task), event["t"]))
    return found


def _covered(spans: Iterable[tuple[float, float]]) -> float:
    """Seconds in which at least one of the spans is under way.

    >>> _covered([(1.0, 3.0), (2.0, 4.0), (6.0, 7.0)])
    4.0
    """
    total, until = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total
