"""The newest file of a part of the checkpoint is gone, or all of it, or the manifest of Spark's file sink."""

from __future__ import annotations

from ...plans import Action
from ..capabilities import Scene
from ..checkpoints import MANIFEST, PARTS, WHOLE, change


def act(action: Action, scene: Scene) -> str:
    return scene.checkpoint.remove(str(action.target))


ACTION = change(
    name="remove",
    meaning="removes the newest file of a part of the checkpoint (of state: the newest version in each store), or with "
    "checkpoint all of it, with manifest that of Spark's file sink (_spark_metadata); the driver that follows reads "
    "what is left",
    example="batch.commit:after[batch=1] -> remove(commits) then kill(driver)",
    act=act,
    targets=(*PARTS, WHOLE, MANIFEST),
)
