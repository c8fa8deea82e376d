"""Which broker an action means: the parked one, or one by its number or by what it is just then."""

from __future__ import annotations

from ...plans import Action
from ..declarations import Parameter

BY_NUMBER = ("broker1", "broker2", "broker3")
GROUP_COORDINATOR = "group_coordinator"
BY_ROLE = ("controller", "coordinator", GROUP_COORDINATOR, "leader")
ALL = "all"


def which_broker(*further: str) -> Parameter:
    """The argument of an action on a broker, with what else it may be."""
    more = "".join(f" or {word}" for word in further)
    return Parameter(
        "which",
        "text",
        f"a broker by its number (broker1), or by what it is just then: controller, coordinator of the transaction of "
        f"the point or of an open one, group_coordinator of the group of the point, leader of the partition of the "
        f"point or of the source's first one{more} (default the parked one)",
        choices=(*BY_NUMBER, *BY_ROLE, *further),
        targets=("broker",),
    )


def chosen(action: Action) -> str | None:
    """What ``which`` says; None for the parked broker."""
    which = action.arguments.get("which")
    return None if which is None else str(which)
