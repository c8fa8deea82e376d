"""A network that swallows everything for a time: nobody is told, until the connection ends."""

from __future__ import annotations

from ..capabilities import Impairment
from ._links import impairing

ACTION = impairing(
    "timeout",
    meaning="nothing passes for a time between the job and the services of its targets; what was sent meanwhile is "
    "lost, and its connection is cut at the end",
    example="sink.write:before[batch=1] -> timeout(for=5s)",
    impairment=lambda action: Impairment(silent=True),
    arguments=(),
)
