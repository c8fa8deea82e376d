"""A narrow network: little passes between the job and a service in a second."""

from __future__ import annotations

from ...plans import Action
from ...requirements import Requirement
from ..capabilities import Impairment, Scene
from ..declarations import ActionSpec, Parameter
from ._links import FOR, SERVICE, impair


def act(action: Action, scene: Scene) -> str:
    return impair(ACTION, action, scene, Impairment(rate=int(action.arguments["rate"])))


ACTION = ActionSpec(
    name="bandwidth",
    meaning="no more than so many bytes a second pass for a time, each way of each connection between the job and the "
    "services of its targets",
    example="sink.write:before[batch=1] -> bandwidth(rate=4096, for=5s)",
    act=act,
    requires=(Requirement("impaired"),),
    arguments=(Parameter("rate", "number", "bytes a second", minimum=1, required=True), FOR, SERVICE),
    through_proxy=True,
    self_inflicted=(None,),
)
