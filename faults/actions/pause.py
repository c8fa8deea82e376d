"""SIGSTOP, and SIGCONT later: a long garbage collection, a suspended machine, a zombie."""

from __future__ import annotations

from ...plans import Action
from ...requirements import Requirement
from ..capabilities import FOLLOWERS, Scene
from ..declarations import ActionSpec, Parameter
from ._brokers import which_broker
from ._executors import NUMBERED, meant


def act(action: Action, scene: Scene) -> str:
    """With ``until`` the cluster takes the silent process for dead, and its end comes later."""
    replace = action.until is not None
    target, which = str(action.target), meant(action)
    paused = scene.machines.pause(target, scene.point, by=scene.reference, replace=replace, which=which)
    if replace:
        return paused
    try:
        scene.thread.keep(ACTION.seconds(action, "for"))
    finally:  # a trial that ends before leaves nothing stopped
        resumed = end(action, scene)
    return f"{paused}; {resumed}"


def end(action: Action, scene: Scene) -> str:
    return scene.machines.resume(str(action.target), scene.point, paused_by=scene.reference)


ACTION = ActionSpec(
    name="pause",
    meaning="stops the process (SIGSTOP) for a time, or until a point is reported by another",
    example="sink.write:after[batch=1] -> pause(driver) until batch.commit:after[batch=1]",
    act=act,
    end=end,
    requires=(Requirement("goes_on"),),
    requires_if_killed=(Requirement("taken_over", targets=("driver",)),),
    targets=("driver", "executor", "worker", "broker"),
    arguments=(
        Parameter("for", "duration", "how long the process stays stopped"),
        Parameter(
            "longest",
            "duration",
            "with until: when it goes on even if the point was not reported (a broker needs it)",
            with_until=True,
        ),
        which_broker(FOLLOWERS),
        NUMBERED,
    ),
    longest="longest",
    keeps_requests_of=("driver", "executor", "worker"),
    exactly_one=("for", "until"),
    takes_service_away=("broker",),
)
