"""A narrow network: little passes between the job and a service in a second."""

from __future__ import annotations

from ..capabilities import Impairment
from ..declarations import Parameter
from ._links import impairing

ACTION = impairing(
    "bandwidth",
    meaning="no more than so many bytes a second pass for a time, each way of each connection between the job and the "
    "services of its targets",
    example="sink.write:before[batch=1] -> bandwidth(rate=4096, for=5s)",
    impairment=lambda action: Impairment(rate=int(action.arguments["rate"])),
    arguments=(Parameter("rate", "number", "bytes a second", minimum=1, required=True),),
)
