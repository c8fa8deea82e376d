"""Hanging: a transaction that nobody ended, though everything of the job has."""

from __future__ import annotations

import pyarrow as pa

from ..causes import after_what
from ..model import Anomaly, Evidence, Open
from ._records import SHOWN


def check(truth: pa.Table, observed: pa.Table, evidence: Evidence) -> Anomaly | None:
    """At the settling's deadline no transaction of the job is ongoing or prepared."""
    hanging = evidence.settlement.hanging
    if not hanging:
        return None
    return Anomaly(
        kind="hanging",
        count=len(hanging),
        records=[
            {"kind": one.kind, "name": one.name, "state": one.state, "detail": one.detail} for one in hanging[:SHOWN]
        ],
        causes=[*dict.fromkeys(_cause(one, evidence) for one in hanging[:SHOWN])],
    )


def _cause(one: Open, evidence: Evidence) -> str:
    what = f"{one.kind} transaction {one.name} was left {one.state}{after_what(evidence)}"
    return f"{what}, and no attempt ended it: {one.holds_up}"
