"""A checkpoint is copied to another place, and the drivers that follow use the copy."""

from __future__ import annotations

from ...plans import Action
from ..capabilities import Scene
from ..checkpoints import WHOLE, change


def act(action: Action, scene: Scene) -> str:
    return scene.checkpoint.copy()


ACTION = change(
    name="copy",
    meaning="copies the checkpoint to another place, and the drivers that follow use the copy, as in a second data "
    "centre that has a replica: one that was taken for dead goes on with its own, and nothing in it says that it was "
    "replaced",
    example="sink.write:before[batch=1] -> copy(checkpoint) then pause(driver, longest=30s) until "
    "batch.commit:after[batch=1]",
    act=act,
    targets=(WHOLE,),
)
