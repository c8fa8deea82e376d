"""SIGSTOP, and SIGCONT later: a long garbage collection, a suspended machine, a zombie."""

from __future__ import annotations

from ..declarations import ActionSpec, Parameter

ACTION = ActionSpec(
    name="pause",
    meaning="stops the process (SIGSTOP) for a time, or until a point is reported by another",
    example="sink.write:after[batch=1] -> pause(driver) until batch.commit:after[batch=1]",
    targets=("driver", "executor", "worker", "broker"),
    arguments=(Parameter("for", "duration", "how long the process stays stopped"),),
    exactly_one=("for", "until"),
)
