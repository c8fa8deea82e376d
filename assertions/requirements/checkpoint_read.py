"""A checkpoint was changed: the driver that follows reads it, and goes on by what it finds or fails of it."""

from __future__ import annotations

from ..journal import runs
from ..traces import Found, Struck

REPLAY = True


def check(struck: Struck) -> Found:
    """The journal has the change, and after it a run of the query that was not there before, or a driver that ends by
    an error. What is handed over again depends on what is left of the checkpoint; even the query may be another one,
    where its id is gone."""
    required = "the checkpoint is changed, and the next driver reads it"
    changed = [
        index
        for index, event in enumerate(struck.journal)
        if event["event"] == "checkpoint.changed" and index <= struck.confirmed_at
    ]
    if not changed:
        return Found(required, None, "nothing of the checkpoint was changed")
    start = changed[-1]
    old = {None, *runs(struck.journal, 0, start)}
    for event in struck.journal[start + 1 :]:
        if event["event"] == "driver.exited" and not event.get("planned") and event.get("code"):
            return Found(required, f"the next driver ended with code {event['code']}: {event.get('error')}")
        if event["event"] == "point" and event.get("run") not in old:
            return Found(required, f"run {event['run']} started in {event.get('process')}")
    return Found(required, None, "no other run was reported afterwards")
