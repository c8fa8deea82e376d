"""SIGCONT before the pause would end by itself."""

from __future__ import annotations

from ..declarations import ActionSpec

ACTION = ActionSpec(
    name="resume",
    meaning="ends a pause that another action of the plan began",
    example="txn.prepare:after -> pause(broker, for=1m); batch.commit:before[batch=1] -> resume(broker)",
    targets=("driver", "executor", "worker", "broker"),
    follows="pause",
)
