"""A service says that it could not do what it was asked, whether it has done it or not."""

from __future__ import annotations

from ...plans import Action
from ...requirements import Requirement
from ..capabilities import Scene
from ..declarations import ActionSpec, Parameter


def act(action: Action, scene: Scene) -> str:
    error = str(action.arguments["error"])
    scene.thread.answer_with(error)
    return f"it is answered with {error}"


ACTION = ActionSpec(
    name="answer",
    meaning="the client gets the answer that its request failed: one that is stopped before never reaches the service, "
    "one that is stopped after was done all the same",
    example="request:after[service=kafka, kind=EndTxn, batch=1] -> answer(COORDINATOR_NOT_AVAILABLE)",
    act=act,
    requires=(Requirement("error_seen"),),
    arguments=(
        Parameter("error", "text", "the error, as the service's protocol calls it", required=True),
        Parameter(
            "times",
            "number",
            "at how many reports of the point in a row, from this one on: whoever asks again gets it again",
            minimum=1,
            default=1,
        ),
    ),
    positional="error",
    times="times",
    stopped_in=("connection",),
    answers=True,
    moment=False,
    self_inflicted=(None,),
)
