"""Every connection breaks at once, as when a firewall or a load balancer forgets them."""

from __future__ import annotations

from ...plans import Action
from ...requirements import Requirement
from ..capabilities import Scene
from ..declarations import ActionSpec
from ._links import SERVICE, service_of


def act(action: Action, scene: Scene) -> str:
    return scene.network.reset(service_of(action, scene.point))


ACTION = ActionSpec(
    name="reset",
    meaning="ends all connections between the job and the services of its targets with a reset (RST), on both sides; a "
    "request that is stopped does not arrive, nor an answer that is",
    example="sink.write:before[batch=1] -> reset",
    act=act,
    requires=(Requirement("error_seen"),),
    arguments=(SERVICE,),
    through_proxy=True,
    self_inflicted=(None,),
)
