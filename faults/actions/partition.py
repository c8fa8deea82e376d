"""A machine without its network for a time: it lives on, and so does what it cannot reach."""

from __future__ import annotations

from ...plans import Action
from ...requirements import Requirement
from ..capabilities import Scene
from ..declarations import ActionSpec, Parameter
from ._brokers import BY_NUMBER, which_broker
from ._executors import NUMBERED, meant

TARGETS = ("driver", "executor", "broker")


def act(action: Action, scene: Scene) -> str:
    peer = ACTION.value(action, "peer")
    seconds = ACTION.seconds(action, "for")
    target, other = str(action.target), None if peer is None else str(peer)
    return scene.network.cut(target, scene.point, other, seconds, which=meant(action))


ACTION = ActionSpec(
    name="partition",
    meaning="cuts the network between the target's machine and another, both ways, and heals it after a time; the "
    "stopped thread goes on as soon as nothing passes. driver: the driver's machine; executor: the worker machine of "
    "the parked task; broker: the parked one",
    example="sink.write:before[batch=1] -> partition(driver, peer=broker2, for=20s)",
    act=act,
    requires=(Requirement("healed"),),
    targets=TARGETS,
    arguments=(
        Parameter(
            "peer",
            "text",
            "the other machine: broker1, broker2, broker3, worker1 or worker2 (default every other one)",
            choices=(*BY_NUMBER, "worker1", "worker2"),
        ),
        Parameter("for", "duration", "from the cut to the healing", required=True),
        which_broker(),
        NUMBERED,
    ),
    network=True,
    self_inflicted=TARGETS,
    takes_service_away=TARGETS,
)
