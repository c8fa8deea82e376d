"""The newest file of a part of the checkpoint is gone, or all of the checkpoint."""

from __future__ import annotations

from ...plans import Action
from ..capabilities import Scene
from ..checkpoints import FOR_THE_NEXT, PARTS, READ, STOPPED_IN, WHOLE
from ..declarations import ActionSpec


def act(action: Action, scene: Scene) -> str:
    return scene.checkpoint.remove(str(action.target))


ACTION = ActionSpec(
    name="remove",
    meaning="removes the newest file of a part of the checkpoint (of state: the newest version in each store), or with "
    "checkpoint all of it; the driver that follows reads what is left",
    example="batch.commit:after[batch=1] -> remove(commits) then kill(driver)",
    act=act,
    requires=READ,
    targets=(*PARTS, WHOLE),
    stopped_in=STOPPED_IN,
    moment=False,
    read_after_death_of=FOR_THE_NEXT,
)
