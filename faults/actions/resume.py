"""SIGCONT before the pause would end by itself."""

from __future__ import annotations

from ...plans import Action
from ...requirements import Requirement
from ..capabilities import Scene
from ..declarations import ActionSpec


def act(action: Action, scene: Scene) -> str:
    return scene.machines.resume(str(action.target), scene.point)


ACTION = ActionSpec(
    name="resume",
    meaning="ends the pause that another action of the plan began last",
    example="txn.prepare:after -> pause(broker, for=1m); batch.commit:before[batch=1] -> resume(broker)",
    act=act,
    requires=(Requirement("resumed"),),
    targets=("driver", "executor", "worker", "broker"),
    follows="pause",
)
