"""The network was cut, and is healed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..model import Event
from ..traces import Found, Struck


def check(struck: Struck) -> Found:
    """The journal has the cut and its healing. What could not pass meanwhile may have been sent again, or the batch
    replayed by a new run; neither is required."""
    target, peer = struck.action.target, struck.action.arguments.get("peer")
    if not struck.fired:
        return Found(f"the {target} is cut off, and its network healed", None, "nothing was cut")
    others = peer or "every other machine"
    required = f"the {target} is cut off from {others}, and the network between them healed"
    cut = _network_event(struck, "network.cut", struck.fired_at, {"target": target, "peer": peer})
    if cut is None:
        return Found(required, None, "nothing was cut")
    index, link = cut
    healed = _network_event(struck, "network.healed", index, {"process": link.get("process"), "peer": peer})
    if healed is None:
        return Found(required, None, f"the network between {link.get('process')} and {others} was not healed")
    seconds = healed[1]["t"] - link["t"]
    return Found(required, f"{link.get('process')} was cut off from {others} and healed after {seconds:.1f} s")


def _network_event(struck: Struck, kind: str, start: int, fields: Mapping[str, Any]) -> tuple[int, Event] | None:
    """The first event of this kind after ``start`` that has these fields."""
    for index, event in enumerate(struck.journal):
        if index > start and event["event"] == kind and all(event.get(name) == fields[name] for name in fields):
            return index, event
    return None
