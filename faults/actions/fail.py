"""An exception in the stopped thread, at the step or line at which it stopped."""

from __future__ import annotations

from ...plans import Action
from ...requirements import Requirement
from ..capabilities import InjectionError, Scene
from ..declarations import ActionSpec, Parameter


def act(action: Action, scene: Scene) -> str:
    point = scene.point
    if point.get("role") in ("driver", "executor"):
        scene.thread.fail()
        return "the thread throws java.lang.RuntimeException"
    if point.get("phase") != "line":
        raise InjectionError(
            f"fail needs a thread of a driver or executor, or a line: none is parked at {point or 'a moment'}"
        )
    order: dict[str, object] = {name: str(ACTION.value(action, name)) for name in ("error", "message")}
    if ACTION.value(action, "after"):
        order["after"] = True
    scene.thread.fail(order)
    return f"the line raises {order['error']}"


ACTION = ActionSpec(
    name="fail",
    meaning="raises an exception in the stopped thread: in Python a RuntimeError or the class given, in the JVM a "
    "RuntimeException; with after=true a line is executed first",
    example="line[my_sink.py:42][batch=1]#3 -> fail(error=psycopg.OperationalError)",
    act=act,
    requires=(Requirement("error_seen"),),
    arguments=(
        Parameter(
            "error",
            "class",
            "dotted name of a Python exception class",
            default="RuntimeError",
            stopped_in=("python",),
            elsewhere="where fail raises a RuntimeException",
        ),
        Parameter("message", "text", "what the exception says", default="injected by onceproof"),
        Parameter(
            "after",
            "flag",
            "whether the line is executed first, and then reported as failed",
            default=False,
            stopped_in=("python",),
            elsewhere="where a step has another edge for that",
        ),
    ),
    stopped_in=("driver", "executor", "python"),
    moment=False,
    self_inflicted=(None,),
)
