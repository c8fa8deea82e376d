"""A request, or the answer to one, never arrives: the connection is cut."""

from __future__ import annotations

from ...plans import Action
from ...requirements import Requirement
from ..capabilities import Scene
from ..declarations import ActionSpec


def act(action: Action, scene: Scene) -> str:
    scene.thread.drop()
    return "the connection is cut"


ACTION = ActionSpec(
    name="drop",
    meaning="the request that is stopped never reaches the service, or its answer never reaches the job: its "
    "connection is cut",
    example="request:after[kind=COMMIT, batch=1] -> drop",
    act=act,
    requires=(Requirement("error_seen"),),
    stopped_in=("connection",),
    moment=False,
    self_inflicted=(None,),
)
