"""Stuck: after a fault the job never gets past a batch again."""

from __future__ import annotations

import pyarrow as pa

from ..causes import after_what, hand_over_story
from ..model import Anomaly, Evidence


def check(truth: pa.Table, observed: pa.Table, evidence: Evidence) -> Anomaly | None:
    """A job that is restarted on its checkpoint after a fault gets to the end of its input."""
    if evidence.stuck is None:
        return None
    batch = next((event.get("batch") for event in evidence.journal if event["event"] == "driver.gave_up"), None)
    befell = f"{after_what(evidence, most=3)} ".lstrip()
    story = f"{hand_over_story(batch, evidence)}; " if batch is not None else befell
    return Anomaly(
        kind="stuck",
        count=1,
        records=[{"batch": batch, "error": evidence.stuck} if batch is not None else {"error": evidence.stuck}],
        batches=[] if batch is None else [batch],
        causes=[f"{story}it never got past it: {evidence.stuck}"],
    )
