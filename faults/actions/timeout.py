"""A network that swallows everything for a time: nobody is told, until the connection ends."""

from __future__ import annotations

from ...plans import Action
from ...requirements import Requirement
from ..capabilities import Impairment, Scene
from ..declarations import ActionSpec
from ._links import FOR, SERVICE, impair


def act(action: Action, scene: Scene) -> str:
    return impair(ACTION, action, scene, Impairment(silent=True))


ACTION = ActionSpec(
    name="timeout",
    meaning="nothing passes for a time between the job and the services of its targets; what was sent meanwhile is "
    "lost, and its connection is cut at the end",
    example="sink.write:before[batch=1] -> timeout(for=5s)",
    act=act,
    requires=(Requirement("impaired"),),
    arguments=(FOR, SERVICE),
    through_proxy=True,
    self_inflicted=(None,),
)
