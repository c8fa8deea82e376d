"""Changes of a checkpoint while its query is down: what storage loses, tears or gives back from an older copy."""

from __future__ import annotations

from ..requirements import Requirement
from .declarations import ActionSpec, Effect, Parameter

PARTS = ("metadata", "offsets", "commits", "state")
"""What a checkpoint consists of. A part's newest file is changed; of the state, those of its newest version."""

WHOLE = "checkpoint"

MANIFEST = "manifest"
"""That of Spark's file sink lies with what it has written (_spark_metadata); its query reads it as it does a
checkpoint."""


def change(
    *,
    name: str,
    meaning: str,
    example: str,
    act: Effect,
    targets: tuple[str, ...] = PARTS,
    arguments: tuple[Parameter, ...] = (),
) -> ActionSpec:
    """An action that changes the checkpoint.

    It is done while a thread of the driver or of the sink's own code is stopped: the query writes to no log then. Who
    has read a checkpoint keeps to what it knows, so only the driver that follows reads what was changed: the other one
    has to die behind it, or to be taken for dead. What the next driver does depends on what is left: that it has read
    it is what is required.
    """
    return ActionSpec(
        name=name,
        meaning=meaning,
        example=example,
        act=act,
        requires=(Requirement("checkpoint_read"),),
        targets=targets,
        arguments=arguments,
        stopped_in=("driver", "python"),
        moment=False,
        read_by_the_next="driver",
    )
