"""A real SIGKILL of a process, confirmed before anything goes on."""

from __future__ import annotations

from ...plans import Action
from ...requirements import Requirement
from ..capabilities import Scene
from ..declarations import ActionSpec, Parameter
from ..replays import OF_A_DRIVER


def act(action: Action, scene: Scene) -> str:
    lost = ACTION.value(action, "unsynced") == "lost"
    end = scene.machines.cut_power if lost else scene.machines.kill
    return end(str(action.target), scene.point, restart_after=scene.restart_after)


ACTION = ActionSpec(
    name="kill",
    meaning="SIGKILL; its supervisor restarts it at once. driver: its whole machine (JVM, Python, pyspark.daemon, "
    "workers); executor: the JVM of the parked task; worker: the Python worker that serves the parked task; node: the "
    "worker machine of the parked task, with all on it (docker); broker: the parked one. With unsynced=lost the "
    "driver's machine loses its power",
    example="sink.commit:after[batch=2] -> kill(driver)",
    act=act,
    requires=(
        *OF_A_DRIVER,
        Requirement("higher_attempt", targets=("executor", "worker", "node")),
        Requirement("broker_registered", targets=("broker",)),
    ),
    targets=("driver", "executor", "worker", "node", "broker"),
    arguments=(
        Parameter(
            "unsynced",
            "text",
            "lost: what the sink's own code wrote to files and did not sync goes with the machine's power",
            choices=("kept", "lost"),
            default="kept",
            targets=("driver",),
            needs_files=True,
        ),
    ),
    self_inflicted=("executor", "worker", "node"),
    takes_broker_away=("broker",),
)
