"""A connection that breaks in the middle of what is sent: a part of a request arrives, or a part of an answer."""

from __future__ import annotations

from ..capabilities import Impairment
from ..declarations import Parameter
from ._links import impairing

ACTION = impairing(
    "limit_data",
    meaning="each connection between the job and the services of its targets is cut when so many bytes have passed "
    "over it, both ways together; those that are opened in that time, too",
    example="sink.write:before[batch=1] -> limit_data(bytes=1000, for=2s)",
    impairment=lambda action: Impairment(limit=int(action.arguments["bytes"])),
    arguments=(Parameter("bytes", "number", "what still passes", required=True),),
)
