"""Stuck: after a fault the job never gets past a batch again."""

from __future__ import annotations

import pyarrow as pa

from ..causes import hand_over_story
from ..journal import disturbances
from ..model import Anomaly, Evidence


def check(truth: pa.Table, observed: pa.Table, evidence: Evidence) -> Anomaly | None:
    """A job that is restarted on its checkpoint after a fault gets to the end of its input."""
    if evidence.stuck is None:
        return None
    batch = next((event.get("batch") for event in evidence.journal if event["event"] == "driver.gave_up"), None)
    after = disturbances(evidence.journal, evidence.faults, 0, None)
    befell = f"after {' and '.join(after[:3])} " if after else ""
    story = f"{hand_over_story(batch, evidence)}; " if batch is not None else befell
    return Anomaly(
        kind="stuck",
        count=1,
        records=[{"batch": batch, "error": evidence.stuck} if batch is not None else {"error": evidence.stuck}],
        batches=[] if batch is None else [batch],
        causes=[f"{story}it never got past it: {evidence.stuck}"],
    )
