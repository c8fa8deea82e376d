"""Which executor an action means: that of the parked task, or one by its number."""

from __future__ import annotations

from ...plans import NUMBER, Action
from ..capabilities import Meant, Nth
from ..declarations import Parameter
from ._brokers import chosen

NUMBERED = Parameter(
    NUMBER,
    "number",
    "in brackets behind the target, as in executor[1]: of the executors that the job has just then, in the order of "
    "Spark's ids, from 0 (default that of the parked task)",
    targets=("executor",),
)


def meant(action: Action) -> Meant | None:
    """What the action says of the broker or executor that it means; None for the parked one."""
    number = action.arguments.get(NUMBER)
    return chosen(action) if number is None else Nth(int(number))
