"""A connection whose other end has closed it, and that is not told so for a while."""

from __future__ import annotations

from ..capabilities import Impairment
from ..declarations import Parameter
from ._links import impairing

ACTION = impairing(
    "slow_close",
    meaning="for a time one side of a connection between the job and the services of its targets learns late that the "
    "other has closed it: what a dead driver had open stays open at the service",
    example="sink.write:before[batch=1] -> slow_close(5s, for=20s) then kill(driver)",
    impairment=lambda action: Impairment(linger=float(action.arguments["of"])),
    arguments=(Parameter("of", "duration", "how much later", required=True),),
    positional="of",
)
