"""The stopped thread waits; its process goes on."""

from __future__ import annotations

from ...plans import Action
from ...requirements import Requirement
from ..capabilities import Scene
from ..declarations import ActionSpec, Parameter


def act(action: Action, scene: Scene) -> str:
    if action.until is not None:
        return "the thread was kept"
    seconds = ACTION.seconds(action, "for")
    scene.thread.keep(seconds)
    return f"the thread was kept for {seconds:g} s"


def end(action: Action, scene: Scene) -> str:
    return "it was let go"


ACTION = ActionSpec(
    name="delay",
    meaning="keeps the stopped thread for a time, or until another reports a point; the rest of its process goes on",
    example="sink.write:before[batch=1] -> delay(2s)",
    act=act,
    end=end,
    requires=(Requirement("kept"),),
    arguments=(
        Parameter("for", "duration", "how long the thread is kept"),
        Parameter(
            "longest", "duration", "with until: when it is let go even if the point was not reported", with_until=True
        ),
    ),
    positional="for",
    longest="longest",
    exactly_one=("for", "until"),
    keeps_thread=True,
    moment=False,
)
