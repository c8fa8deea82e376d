"""A driver ended while the sink had the batch: it is handed over again."""

from __future__ import annotations

from ..traces import Found, Struck
from ._hand_over import byte_equal

REPLAY = True


def check(struck: Struck) -> Found:
    """A new run hands the batch over a second time, with the same offsets."""
    return byte_equal(struck, f"batch {struck.batch} is handed over a second time")
