"""A slow network: all that passes between the job and a service arrives later."""

from __future__ import annotations

from ..capabilities import Impairment
from ..declarations import Parameter
from ._links import impairing

ACTION = impairing(
    "latency",
    meaning="what passes between the job and the services of its targets arrives later for a time, each way",
    example="sink.write:before[batch=1] -> latency(200ms, jitter=50ms, for=5s)",
    impairment=lambda action: Impairment(
        latency=float(action.arguments["of"]), jitter=float(action.arguments.get("jitter", 0.0))
    ),
    arguments=(
        Parameter("of", "duration", "how much later", required=True),
        Parameter("jitter", "duration", "give or take up to so much (default 0s)", default=0.0),
    ),
    positional="of",
)
