"""Which broker an action means: the parked one, or one by its number or by what it is just then."""

from __future__ import annotations

from ...plans import Action
from ..capabilities import FOLLOWERS, Which
from ..declarations import Parameter

BY_NUMBER = ("broker1", "broker2", "broker3")
GROUP_COORDINATOR = "group_coordinator"
ALL = "all"

NAMED = {
    "coordinator": "a transactional id",
    GROUP_COORDINATOR: "a group",
    "leader": "TOPIC-PARTITION",
    FOLLOWERS: "TOPIC-PARTITION",
}
"""Roles, with what a broker has each of them for."""

BY_ROLE = ("controller", "coordinator", GROUP_COORDINATOR, "leader")


def which_broker(*further: str) -> Parameter:
    """The argument of an action on a broker, with what else it may be."""
    more = "".join(f" or {word}" for word in further)
    choices = (*BY_NUMBER, *BY_ROLE, *further)
    return Parameter(
        "which",
        "text",
        f"a broker by its number (broker1), or by what it is just then: controller, coordinator of the transaction of "
        f"the point or of an open one, group_coordinator of the group of the point, leader of the partition of the "
        f"point or of the source's first one{more}; of a transaction, group or partition that is named, as in "
        f'"leader(events-0)" (default the parked one)',
        choices=choices,
        named={role: name for role, name in NAMED.items() if role in choices},
        targets=("broker",),
    )


def chosen(action: Action) -> Which | None:
    """What ``which`` says; None for the parked broker."""
    text = action.arguments.get("which")
    if text is None:
        return None
    role, _, of = str(text).rstrip(")").partition("(")
    return Which(role, of or None)
