"""The hand-over of a batch by a new run: with the same offsets it is a replay, with others it is another batch."""

from __future__ import annotations

from ..journal import hand_overs, is_at, points
from ..traces import Found, Struck


def byte_equal(struck: Struck, what: str) -> Found:
    """A new run hands the batch over, offsets/N byte-equal: the same input, or it is no replay."""
    start, batch = struck.confirmed_at, struck.batch
    required = f"{what}, offsets/{batch} byte-equal"
    again = struck.new_hand_overs(start, batch)
    if not again:
        return Found(required, None, f"no other run handed batch {batch} to the sink")
    known = [one.offsets for one in hand_overs(struck.journal, batch) if one.index < start]
    digests = [digest for digest in [struck.point.get("offsets"), *known] if digest]
    by = f"run {again[0].run} ({again[0].process}) handed batch {batch} to the sink"
    if digests and again[0].offsets == digests[-1]:
        return Found(required, f"{by}, offsets/{batch} byte-equal ({digests[-1][:12]})")
    if digests:
        return Found(required, None, f"{by}, but offsets/{batch} differs or its digest is unknown")
    return _written_once(struck, required, by)


def _written_once(struck: Struck, required: str, by: str) -> Found:
    """Ended between the offset log and the first hand-over, no digest was taken: then the file must have been written
    by the old run, and not again by the new one (Spark plans a batch only where offsets/N is absent)."""
    start, batch = struck.confirmed_at, struck.batch
    written = any(
        is_at(event, "batch.offsets", "after") and event.get("batch") == batch and index < start
        for index, event in points(struck.journal)
    )
    again = any(is_at(e, "batch.offsets") and e.get("batch") == batch for _, e in struck.new_points(start))
    if written and not again:
        return Found(required, f"{by}, and did not write offsets/{batch} again")
    return Found(required, None, f"{by}, but nothing shows that offsets/{batch} is the same")
