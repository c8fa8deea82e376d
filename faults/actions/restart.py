"""How long the supervisor waits before it restarts what was killed."""

from __future__ import annotations

from ...plans import Action
from ..capabilities import Scene
from ..declarations import SERVERS, ActionSpec, Parameter


def act(action: Action, scene: Scene) -> str:
    return f"the supervisor restarts the {action.target} after {ACTION.seconds(action, 'after'):g} s"


ACTION = ActionSpec(
    name="restart",
    meaning="delays the supervisor's restart of what this fault has killed; executors and workers are Spark's own",
    example="txn.prepare:after -> kill(broker) then restart(broker, after=2s)",
    act=act,
    targets=("driver", "node", "broker", *SERVERS),
    arguments=(Parameter("after", "duration", "from the death to the new start", default=0.0),),
    follows="kill",
    same_fault=True,
    amends=True,
    restart_delay="after",
)
