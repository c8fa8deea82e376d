"""What can be said of a plan whose sink is not known yet: whether some sink could have it.

Which services a sink speaks to decides what a request is, so the plan is held against sinks that speak to all of them,
and against sinks that speak to as few as the plan allows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from ...plans import Plan
from ..declarations import SERVERS
from ..protocols import PROTOCOLS
from ..shape import UNKNOWN, SinkShape
from .needs import points_of

ANOTHER = "another"
"""A service of the user's own that the plan does not name."""


def sinks_for(plan: Plan, own_services: Collection[str] = ()) -> Iterator[SinkShape]:
    """Sinks of which nothing is known but the services that they speak to; some sink can have what one of these can.

    ``own_services``: those of the user's own that there are; if none is given, there is each that the plan names.
    """
    named = _services_named(plan)
    ours = named & set(PROTOCOLS)
    own = frozenset(own_services) or named - set(PROTOCOLS)
    another = frozenset() if own_services else frozenset({ANOTHER})
    yield replace(UNKNOWN, own_services=own | another)
    for one in PROTOCOLS:
        yield replace(UNKNOWN, services=ours | {one}, own_services=own)
    yield replace(UNKNOWN, services=ours, own_services=own | another)


def _services_named(plan: Plan) -> frozenset[str]:
    """By its points, by what acts on connections, and by what acts on a server."""
    actions = [action for fault in plan.faults for action in fault.actions]
    named = [point.where.get("service") for point, _ in points_of(plan)]
    named += [action.arguments.get("service") for action in actions]
    named += [action.target for action in actions if action.target in SERVERS]
    return frozenset(str(service) for service in named if service is not None)
