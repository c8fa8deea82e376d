"""A machine without its network for a time: it lives on, and so does what it cannot reach."""

from __future__ import annotations

from ..declarations import ActionSpec, Parameter

ACTION = ActionSpec(
    name="partition",
    meaning="cuts the network between the target's machine and another, both ways, and heals it after a time; the "
    "stopped thread goes on as soon as nothing passes. driver: the driver's machine; executor: the worker machine of "
    "the parked task; broker: the parked one",
    example="sink.write:before[batch=1] -> partition(driver, peer=broker2, for=20s)",
    targets=("driver", "executor", "broker"),
    arguments=(
        Parameter(
            "peer",
            "text",
            "the other machine: broker1, broker2, broker3, worker1 or worker2 (default every other one)",
            choices=("broker1", "broker2", "broker3", "worker1", "worker2"),
        ),
        Parameter("for", "duration", "from the cut to the healing", required=True),
    ),
    network=True,
)
