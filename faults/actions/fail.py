"""An exception in the stopped thread, at the step or line at which it stopped."""

from __future__ import annotations

from ...plans import Action
from ...requirements import Requirement
from ..capabilities import InjectionError, Scene
from ..declarations import ActionSpec, Parameter
from ..errors import listed

ERRNO = "EIO"
"""Of a change of a file, without an error given."""

ERRNOS = (ERRNO, "ENOSPC", "EDQUOT", "EACCES", "EROFS", "EXDEV")
"""Errors of a file system (errno(3))."""


def act(action: Action, scene: Scene) -> str:
    point = scene.point
    if point.get("phase") == "file":
        error = str(action.arguments.get("error", ERRNO))
        scene.thread.fail({"error": error})
        return f"{point.get('op')} fails with {error}"
    if point.get("role") in ("driver", "executor"):
        scene.thread.fail()
        return "the thread throws java.lang.RuntimeException"
    if not str(point.get("role")).startswith("python"):
        raise InjectionError(
            f"fail needs a thread of a driver, an executor or Python: none is parked at {point or 'a moment'}"
        )
    order: dict[str, object] = {name: str(ACTION.value(action, name)) for name in ("error", "message")}
    if ACTION.value(action, "after"):
        order["after"] = True
    scene.thread.fail(order)
    return f"the {point.get('phase')} raises {order['error']}"


ACTION = ActionSpec(
    name="fail",
    meaning="raises an exception in the stopped thread: in Python a RuntimeError or the class given, in the JVM a "
    "RuntimeException; with after=true a line is executed first. A change of a file fails with EIO or the error given",
    example="line[my_sink.py:42][batch=1]#3 -> fail(error=psycopg.OperationalError)",
    act=act,
    requires=(Requirement("error_seen"),),
    arguments=(
        Parameter(
            "error",
            "class",
            f"dotted name of a Python exception class; where a file is changed {listed(ERRNOS)} (else {ERRNO})",
            default="RuntimeError",
            stopped_in=("python", "files"),
            choices_in={"files": ERRNOS},
            elsewhere="where fail raises a RuntimeException",
        ),
        Parameter("message", "text", "what the exception says", default="injected by onceproof"),
        Parameter(
            "after",
            "flag",
            "whether the line is executed first, and then reported as failed",
            default=False,
            stopped_in=("python",),
            without_edge=True,
            elsewhere="where a step has another edge for that",
        ),
        Parameter(
            "times",
            "number",
            "at how many reports of the point in a row, from this one on: whoever tries again fails again",
            minimum=1,
            default=1,
        ),
    ),
    times="times",
    stopped_in=("driver", "executor", "python", "files"),
    moment=False,
    self_inflicted=(None,),
)
