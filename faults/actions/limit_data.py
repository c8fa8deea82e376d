"""A connection that breaks in the middle of what is sent: a part of a request arrives, or a part of an answer."""

from __future__ import annotations

from ...plans import Action
from ...requirements import Requirement
from ..capabilities import Impairment, Scene
from ..declarations import ActionSpec, Parameter
from ._links import FOR, SERVICE, impair


def act(action: Action, scene: Scene) -> str:
    return impair(ACTION, action, scene, Impairment(limit=int(action.arguments["bytes"])))


ACTION = ActionSpec(
    name="limit_data",
    meaning="each connection between the job and the services of its targets is cut when so many bytes have passed "
    "over it, both ways together; those that are opened in that time, too",
    example="sink.write:before[batch=1] -> limit_data(bytes=1000, for=2s)",
    act=act,
    requires=(Requirement("impaired"),),
    arguments=(Parameter("bytes", "number", "what still passes", required=True), FOR, SERVICE),
    through_proxy=True,
    self_inflicted=(None,),
)
