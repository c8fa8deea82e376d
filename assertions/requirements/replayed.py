"""A driver ended while the sink had the batch: it is handed over again."""

from __future__ import annotations

from ..journal import is_at, points
from ..traces import Found, Struck
from . import gone_on
from ._hand_over import byte_equal

REPLAY = True


def check(struck: Struck) -> Found:
    """A new run hands the batch over a second time, with the same offsets.

    A thread of the sink's own may have been struck, beside which the query goes on: where the batch was in the commit
    log when the driver was dead, the next run goes on behind it. Whether it was there is not known of a commit that had
    only begun.
    """
    committed = _commit_until_death(struck)
    if "after" in committed:
        return gone_on.check(struck)
    found = byte_equal(struck, f"batch {struck.batch} is handed over a second time")
    return gone_on.check(struck) if found.seen is None and "before" in committed else found


def _commit_until_death(struck: Struck) -> set[object]:
    """The edges of the batch's commit that its run had reported, unless it was struck there: then it stood still."""
    if is_at(struck.point, "batch.commit"):
        return set()
    of_batch = (struck.batch, struck.point.get("run"))
    return {
        event.get("edge")
        for index, event in points(struck.journal)
        if index < struck.confirmed_at and is_at(event, "batch.commit")
        if (event.get("batch"), event.get("run")) == of_batch
    }
