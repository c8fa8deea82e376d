"""A second query of the same job and sink begins beside the trial's, with a checkpoint and targets of its own."""

from __future__ import annotations

from ...plans import Action
from ...requirements import Requirement
from ..capabilities import Scene
from ..declarations import ActionSpec


def act(action: Action, scene: Scene) -> str:
    return scene.queries.start(scene.point)


ACTION = ActionSpec(
    name="start",
    meaning="starts a second query of the same job into the same sink, with a checkpoint and targets of its own, and "
    "goes on once that one has committed a batch, or has ended, or after 75 s; the first one's driver stands still "
    "until then. What a sink names for a whole service, such as a transactional id, two queries must not share",
    example="request:before[service=kafka, kind=EndTxn, batch=1] -> start(query)",
    act=act,
    requires=(Requirement("ran_beside"),),
    targets=("query",),
    executions=("micro-batch",),
)
