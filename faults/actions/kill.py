"""A real SIGKILL of a process, confirmed before anything goes on."""

from __future__ import annotations

from ..declarations import ActionSpec

ACTION = ActionSpec(
    name="kill",
    meaning="SIGKILL; its supervisor restarts it at once. driver: its whole machine (JVM, Python, pyspark.daemon, "
    "workers); executor: the JVM of the parked task; worker: the Python worker that serves the parked task; node: the "
    "worker machine of the parked task, with all on it (docker); broker: the parked one",
    example="sink.commit:after[batch=2] -> kill(driver)",
    targets=("driver", "executor", "worker", "node", "broker"),
)
