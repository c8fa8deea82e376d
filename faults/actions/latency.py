"""A slow network: all that passes between the job and a service arrives later."""

from __future__ import annotations

from ...plans import Action
from ...requirements import Requirement
from ..capabilities import Impairment, Scene
from ..declarations import ActionSpec, Parameter
from ._links import FOR, SERVICE, impair


def act(action: Action, scene: Scene) -> str:
    impairment = Impairment(latency=ACTION.seconds(action, "of"), jitter=ACTION.seconds(action, "jitter"))
    return impair(ACTION, action, scene, impairment)


ACTION = ActionSpec(
    name="latency",
    meaning="what passes between the job and the services of its targets arrives later for a time, each way",
    example="sink.write:before[batch=1] -> latency(200ms, jitter=50ms, for=5s)",
    act=act,
    requires=(Requirement("impaired"),),
    arguments=(
        Parameter("of", "duration", "how much later", required=True),
        Parameter("jitter", "duration", "give or take up to so much (default 0s)", default=0.0),
        FOR,
        SERVICE,
    ),
    positional="of",
    through_proxy=True,
    self_inflicted=(None,),
)
