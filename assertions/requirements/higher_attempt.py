"""A task lost the process that ran it: Spark attempts it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..journal import is_at, points
from ..model import Event
from ..traces import Found, Struck
from ._tasks import named

REPLAY = True


def check(struck: Struck) -> Found:
    """Spark attempts the task again, or the batch is replayed by a new run (on a master that does not repeat tasks,
    local[n], the death of a worker ends the query). A process that ran no task is confirmed dead."""
    start, dead = struck.fired_at, _dead(struck)
    there = "attempt" in struck.point and dead in (None, struck.point.get("process"))
    parked = there and not struck.record.runs_on  # what runs on may end its task before it is dead
    tasks = [struck.point] if parked else _running(struck, dead or struck.process)
    if not tasks:
        required = f"the {struck.action.target} is confirmed dead (no task was seen running in it)"
        return Found(required, f"{dead or struck.process} died" if struck.confirmed else None)
    required = f"a higher attempt of {named(tasks[0])} starts"
    for task in tasks:
        attempt = _higher_attempt(struck, start, task)
        if attempt is not None:
            return Found(required, f"attempt {attempt['attempt']} of {named(task)} ran in {attempt.get('process')}")
    again = struck.new_hand_overs(start, tasks[0].get("batch", struck.batch))
    if again:
        return Found(required, f"run {again[0].run} ({again[0].process}) handed batch {again[0].batch} over again")
    return Found(required, None, "neither a higher attempt nor another run of the batch was reported")


def _higher_attempt(struck: Struck, start: int, task: Mapping[str, Any]) -> Event | None:
    for _, event in points(struck.journal, start):
        same = all(event.get(name) == task.get(name) for name in ("batch", "partition", "stage"))
        if same and event.get("attempt", -1) > task["attempt"]:
            return event
    return None


def _dead(struck: Struck) -> str | None:
    """The executor that ended by the action, as the journal names it (``process.ended``): not the parked one where the
    plan has a number."""
    own = {"event": "process.ended", "fault": struck.traces.number, "number": struck.number}
    return next((str(event["process"]) for event in struck.journal if own.items() <= event.items()), None)


def _running(struck: Struck, process: str | None) -> list[Mapping[str, Any]]:
    """Tasks that the dead process had begun and not ended, as far as probes reported them: up to the action, or where
    that lets it run on, up to its death."""
    end = struck.confirmed_at if struck.record.runs_on else struck.fired_at
    begun: dict[object, Mapping[str, Any]] = {}
    for index, event in points(struck.journal):
        if index >= end or event.get("process") != process or "attempt" not in event:
            continue
        begun[event.get("task")] = event
        if is_at(event, "task.run", "after") or is_at(event, "task.commit", "after"):
            del begun[event.get("task")]
    return list(begun.values())
