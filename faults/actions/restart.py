"""How long the supervisor waits before it restarts what was killed."""

from __future__ import annotations

from ..declarations import ActionSpec, Parameter

ACTION = ActionSpec(
    name="restart",
    meaning="delays the supervisor's restart of what this fault has killed; executors and workers are Spark's own",
    example="txn.prepare:after -> kill(broker) then restart(broker, after=2s)",
    targets=("driver", "node", "broker"),
    arguments=(Parameter("after", "duration", "from the death to the new start", default=0.0),),
    follows="kill",
    same_fault=True,
)
