"""The newest file of a part of the checkpoint has its length, and other bytes in it."""

from __future__ import annotations

from ...plans import Action
from ..capabilities import Scene
from ..checkpoints import change


def act(action: Action, scene: Scene) -> str:
    return scene.checkpoint.corrupt(str(action.target))


ACTION = change(
    name="corrupt",
    meaning="overwrites the second half of the newest file of a part of the checkpoint with zeros (of state: the "
    "newest version in each store), as a block that was never written; the driver that follows reads it",
    example="batch.commit:after[batch=1] -> corrupt(commits) then kill(driver)",
    act=act,
)
