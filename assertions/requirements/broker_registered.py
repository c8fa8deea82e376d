"""A broker died: it is back, and the transaction that it held is complete."""

from __future__ import annotations

from ..traces import Found, Struck

REPLAY = True


def check(struck: Struck) -> Found:
    """A new incarnation of a broker registers, and the transaction of the point is not left open."""
    name = struck.point.get("transactional_id")
    required = "the broker's new incarnation registers" + (f", transaction {name} is complete" if name else "")
    after = struck.journal[struck.fired_at :]
    back = [event for event in after if event["event"] == "broker.registered"]
    if not back:
        return Found(required, None, "no broker registered afterwards")
    left = [one.state for one in struck.hanging if one.name == name]
    if left:
        return Found(required, None, f"transaction {name} was left {left[0]}")
    complete = f", transaction {name} complete" if name else ""
    moved = [event for event in after if event["event"] == "txn.coordinator"]
    coordinator = f" (coordinator now: broker {moved[0].get('broker')})" if moved and name else ""
    broker = back[0].get("broker")
    who = broker if isinstance(broker, str) else f"broker {broker}"
    return Found(required, f"{who} registered again{complete}{coordinator}")
