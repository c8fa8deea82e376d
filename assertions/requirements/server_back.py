"""The server of a target died: it is back, and answers."""

from __future__ import annotations

from ..traces import Found, Struck

REPLAY = True


def check(struck: Struck) -> Found:
    """The server answers again, once its crash recovery is done."""
    server = struck.action.target
    required = f"{server} answers again"
    back = [
        event
        for event in struck.journal[struck.fired_at :]
        if event["event"] == "server.back" and event.get("server") == server
    ]
    if not back:
        return Found(required, None, f"nothing shows that {server} came back")
    return Found(required, str(back[0].get("detail")))
