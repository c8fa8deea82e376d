"""A real SIGKILL of a process, confirmed before anything goes on."""

from __future__ import annotations

from ...plans import Action
from ...requirements import Requirement
from ..capabilities import FOLLOWERS, Scene
from ..declarations import ITSELF, SERVERS, ActionSpec, Parameter
from ..replays import OF_A_DRIVER
from ._brokers import ALL, which_broker
from ._executors import NUMBERED, meant

KEPT, EMPTIED = "kept", "emptied"


def act(action: Action, scene: Scene) -> str:
    target, after = str(action.target), scene.restart_after
    if (unsynced := ACTION.value(action, "unsynced")) != KEPT:
        names = unsynced == EMPTIED
        return scene.machines.cut_power(target, scene.point, restart_after=after, names_kept=names)
    return scene.machines.kill(target, scene.point, by=scene.reference, restart_after=after, which=meant(action))


ACTION = ActionSpec(
    name="kill",
    meaning="SIGKILL; its supervisor restarts it at once. driver: its whole machine (JVM, Python, pyspark.daemon, "
    "workers); executor: the JVM of the parked task, or one by its number; worker: the Python worker that serves the "
    "parked task; node: the worker machine of the parked task, with all on it (docker); broker: the parked one; "
    "postgres, redis: the target's server, which then recovers; self: the process that reached the point, with those "
    "that it has started. With unsynced=lost, or emptied, the driver's machine loses its power",
    example="sink.commit:after[batch=2] -> kill(driver)",
    act=act,
    requires=(
        *OF_A_DRIVER,
        Requirement("higher_attempt", targets=("executor", "worker", "node")),
        Requirement("broker_registered", targets=("broker",)),
        Requirement("server_back", targets=SERVERS),
        Requirement("died", targets=(ITSELF,)),
    ),
    targets=("driver", "executor", "worker", "node", "broker", *SERVERS, ITSELF),
    arguments=(
        Parameter(
            "unsynced",
            "text",
            "what the sink's own code did to files and did not sync goes with the machine's power: lost, all of it; "
            "emptied, what was written to them, but not their names: some file systems journal these only",
            choices=(KEPT, "lost", EMPTIED),
            default=KEPT,
            targets=("driver",),
            needs_files=True,
        ),
        which_broker(FOLLOWERS, ALL),
        NUMBERED,
    ),
    self_inflicted=("executor", "worker", "node", *SERVERS, ITSELF),
    takes_service_away=("broker", *SERVERS),
)
