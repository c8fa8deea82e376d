"""A checkpoint, or its state alone, comes back from an older copy."""

from __future__ import annotations

from ...plans import Action
from ..capabilities import Scene
from ..checkpoints import WHOLE, change
from ..declarations import Parameter


def act(action: Action, scene: Scene) -> str:
    return scene.checkpoint.roll_back(str(action.target), int(action.arguments["to"]))


ACTION = change(
    name="rollback",
    meaning="takes the checkpoint, or its state alone, back to where a batch was committed, as from an older copy; the "
    "driver that follows goes on from there",
    example="batch.commit:after[batch=2] -> rollback(checkpoint, to=0) then kill(driver)",
    act=act,
    targets=(WHOLE, "state"),
    arguments=(Parameter("to", "number", "the batch that is the last one committed then", required=True),),
)
