"""A connection whose other end has closed it, and that is not told so for a while."""

from __future__ import annotations

from ...plans import Action
from ...requirements import Requirement
from ..capabilities import Impairment, Scene
from ..declarations import ActionSpec, Parameter
from ._links import FOR, SERVICE, impair


def act(action: Action, scene: Scene) -> str:
    return impair(ACTION, action, scene, Impairment(linger=ACTION.seconds(action, "of")))


ACTION = ActionSpec(
    name="slow_close",
    meaning="for a time one side of a connection between the job and the services of its targets learns late that the "
    "other has closed it: what a dead driver had open stays open at the service",
    example="sink.write:before[batch=1] -> slow_close(5s, for=20s) then kill(driver)",
    act=act,
    requires=(Requirement("impaired"),),
    arguments=(Parameter("of", "duration", "how much later", required=True), FOR, SERVICE),
    positional="of",
    through_proxy=True,
    self_inflicted=(None,),
)
