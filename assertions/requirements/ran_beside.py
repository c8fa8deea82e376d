"""A second query ran beside the trial's: it got as far as a batch of its own."""

from __future__ import annotations

from ..traces import Found, Struck


def check(struck: Struck) -> Found:
    """The journal has, between the action and its confirmation, that a second query has planned a batch. How it went
    on from there is not required: a sink may let one query in at a time."""
    required = "a second query plans a batch"
    for event in struck.journal[struck.fired_at : struck.confirmed_at + 1]:
        if event["event"] == "query.ran" and event.get("planned"):
            return Found(required, f"{event.get('process')} planned {event['planned']}, committed {event['committed']}")
    return Found(required, None, "it planned none")
