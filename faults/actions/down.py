"""A service that nobody reaches for a time, as when it, or the way to it, is down."""

from __future__ import annotations

from ..capabilities import Impairment
from ._links import impairing

ACTION = impairing(
    "down",
    meaning="for a time the services of the job's targets cannot be reached: its connections are reset, and so is each "
    "one that it opens",
    example="request:before[kind=COMMIT, batch=1] -> down(for=40s)",
    impairment=lambda action: Impairment(refused=True),
    arguments=(),
)
