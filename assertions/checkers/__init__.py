"""The checkers, one file each: every module here has ``check(truth, observed, evidence) -> Anomaly | None``.

The docstring of a checker states its property. ``truth`` and ``observed`` are tables with the same columns, which the
job's expectation says; ``evidence`` is for keys, places (batch, partition, offset) and causes. A new kind of anomaly is
a new file. Its guarantee is ``none``, unless :mod:`..guarantees` knows a milder one; it counts whatever else happened,
unless :mod:`..verdict` says that it may heal, or be the environment's.

Every observed row is exactly one of: right (the first exact copy), duplicated, corrupted, phantom, or, under a sink's
KEY, stale.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

import pyarrow as pa

from ...additions import declared_in
from ..model import Anomaly, Evidence

Checker = Callable[[pa.Table, pa.Table, Evidence], Anomaly | None]


def checkers() -> Mapping[str, Checker]:
    """The checkers by the kind of anomaly that they find."""
    return dict(declared_in(sys.modules[__name__], "check"))


def find_anomalies(truth: pa.Table, observed: pa.Table, evidence: Evidence) -> list[Anomaly]:
    """What all checkers find, by kind."""
    found = (check(truth, observed, evidence) for check in checkers().values())
    return [anomaly for anomaly in found if anomaly is not None]
