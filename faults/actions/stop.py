"""SIGTERM, as a cluster's manager sends it when it takes a machine away: an end in an orderly way, or not."""

from __future__ import annotations

from ...plans import Action
from ...requirements import Requirement
from ..capabilities import Scene
from ..declarations import ActionSpec
from ..replays import OF_A_DRIVER
from ._executors import NUMBERED, meant

SECONDS = 30.0
"""After which what still runs of the driver is killed: YARN and Kubernetes send SIGKILL after 30 s or less."""


def act(action: Action, scene: Scene) -> str:
    target, by, after = str(action.target), scene.reference, scene.restart_after
    return scene.machines.terminate(target, scene.point, by=by, restart_after=after, which=meant(action))


def end(action: Action, scene: Scene) -> str:
    return scene.machines.await_death(str(action.target), SECONDS, by=scene.reference)


ACTION = ActionSpec(
    name="stop",
    meaning="SIGTERM to the driver's main process; the stopped thread then goes on, and the driver's Python and JVM "
    "shut down in an orderly way or not; what still runs after 30 s is killed; its supervisor restarts it at once. "
    "executor: the JVM of the parked task, or one by its number; Spark starts another one",
    example="sink.write:before[batch=1] -> stop(driver)",
    act=act,
    end=end,
    lets_go=True,
    runs_on=True,
    requires=(*OF_A_DRIVER, Requirement("higher_attempt", targets=("executor",))),
    targets=("driver", "executor"),
    arguments=(NUMBERED,),
    self_inflicted=("executor",),
    counts_as="kill",
)
