"""Connections were impaired, something tried to pass over them meanwhile, and they are as before."""

from __future__ import annotations

from ..traces import Found, Struck


def check(struck: Struck) -> Found:
    """The journal has the end of what the action began, with at least one piece of data, or one end of a connection,
    that was kept, cut off or lost. What follows from that, a driver's error or nothing, is not required."""
    required = f"something passes the connections that {struck.action.name} impairs, and they are restored"
    mine = {"fault": struck.traces.number, "number": struck.number}
    for event in struck.journal:
        if event["event"] == "network.restored" and all(event.get(name) == value for name, value in mine.items()):
            services, affected = " and ".join(event.get("services", ())), event.get("affected", 0)
            if affected:
                return Found(required, f"what passed to and from {services} was affected ({affected} of its pieces)")
            return Found(required, None, f"nothing passed to or from {services} meanwhile")
    return Found(required, None, "the connections were not restored")
