"""The stopped thread waits; its process goes on."""

from __future__ import annotations

from ...plans import Action
from ...requirements import Requirement
from ..capabilities import Scene
from ..declarations import ActionSpec, Parameter


def act(action: Action, scene: Scene) -> str:
    seconds = ACTION.seconds(action, "for")
    scene.thread.keep(seconds)
    return f"the thread was kept for {seconds:g} s"


ACTION = ActionSpec(
    name="delay",
    meaning="keeps the stopped thread for a time; the rest of its process goes on",
    example="sink.write:before[batch=1] -> delay(2s)",
    act=act,
    requires=(Requirement("goes_on"),),
    arguments=(Parameter("for", "duration", "how long the thread is kept", required=True),),
    positional="for",
    moment=False,
)
