"""A driver ended with the batch in the offset log, and before the sink had it: it is handed over by the next driver."""

from __future__ import annotations

from ..traces import Found, Struck
from ._hand_over import byte_equal

REPLAY = True


def check(struck: Struck) -> Found:
    """A new run hands the batch to the sink, with the offsets that the dead one had planned."""
    return byte_equal(struck, f"batch {struck.batch} is handed to the sink by the new run")
