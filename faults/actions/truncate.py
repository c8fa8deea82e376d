"""The newest file of a part of the checkpoint is torn: its first half is there."""

from __future__ import annotations

from ...plans import Action
from ..capabilities import Scene
from ..checkpoints import change


def act(action: Action, scene: Scene) -> str:
    return scene.checkpoint.truncate(str(action.target))


ACTION = change(
    name="truncate",
    meaning="cuts the newest file of a part of the checkpoint to its first half (of state: the newest version in each "
    "store), as a write that was torn; the driver that follows reads what is left",
    example="sink.write:after[batch=1] -> truncate(offsets) then kill(driver)",
    act=act,
)
