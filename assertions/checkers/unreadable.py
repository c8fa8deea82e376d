"""Unreadable: after a fault the target cannot be read any more, though it could be before."""

from __future__ import annotations

import pyarrow as pa

from ..causes import after_what
from ..model import Anomaly, Evidence


def check(truth: pa.Table, observed: pa.Table, evidence: Evidence) -> Anomaly | None:
    """If a target could be read without a fault, it can be once the job has recovered from one.

    That it could be is shown by a run without a fault, or by a reading with rows before the fault.
    """
    errors = [reading.error or "no rows" for reading in evidence.readings if reading.rows is None]
    if not errors or len(errors) < len(evidence.readings) or not _landed(evidence) or not _could_be_read(evidence):
        return None
    return Anomaly(
        kind="unreadable",
        count=len(errors),
        records=[{"reading": number, "error": error} for number, error in enumerate(errors, 1)],
        causes=[f"the target could be read before, and cannot be any more{after_what(evidence, most=3)}: {errors[-1]}"],
    )


def _landed(evidence: Evidence) -> bool:
    return any(event["event"] == "fault.confirmed" for event in evidence.journal)


def _could_be_read(evidence: Evidence) -> bool:
    fired = (index for index, event in enumerate(evidence.journal) if event["event"] == "fault.fired")
    first = next(fired, 0)
    read = [glimpse for glimpse in evidence.glimpses if glimpse.event_index < first and glimpse.rows is not None]
    return evidence.readable or any(glimpse.rows.num_rows for glimpse in read if glimpse.rows is not None)
