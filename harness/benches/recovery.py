"""How long a recovery takes, part by part, by how much state there is and where Spark keeps it.

The job ``sum_by_item`` has ten keys for each row of its input. Its driver dies in the last batch, which has a single
row: what is replayed is next to nothing, and all of the state has to be loaded.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...assertions import Workload
from ..errors import UsageError
from ..jobs import find_job
from ..request import Request
from ..session import Session
from ..state_stores import STATE_STORES, StateStoreName
from ..trial.recovery import PARTS, Recovery, recoveries_in
from .trials import passed

JOB, SINK = "sum_by_item", "postgres_upsert"
KEYS_OF_A_ROW = 10
"""The job's ITEMS."""
BATCHES = 4
FAULT = f"sink.write:after[batch={BATCHES - 1}] -> kill(driver)"

BEFORE_THE_LAST = 9.5
"""Rows before the last batch, in times of the rows asked for: half as many, as many, eight times as many."""

MOST_KEYS = 2_000_000
"""The input of more would be larger than a trial's may be."""


class Case(NamedTuple):
    """What is varied. ``keys`` in the state that is loaded."""

    store: StateStoreName
    keys: int


@dataclass(frozen=True)
class Measured:
    """The recoveries of one case, one for each trial."""

    case: Case
    recoveries: Sequence[Recovery]

    def median(self, part: str) -> float:
        return float(statistics.median(getattr(one, part) for one in self.recoveries))

    def medians(self) -> dict[str, float]:
        """Seconds by part, then the total."""
        return {part: self.median(part) for part in (*PARTS, "total")}


class Fit(NamedTuple):
    """``seconds = fixed + per_thousand * keys / 1000``, by least squares, and its share of the variance explained."""

    store: StateStoreName
    fixed: float
    per_thousand: float
    explained: float


def workload_of(keys: int) -> Workload:
    """An input that makes at least ``keys`` keys before its last batch."""
    if not 1 <= keys <= MOST_KEYS:
        raise UsageError(f"--keys {keys} is out of range: give 1 to {MOST_KEYS}")
    return Workload(batches=BATCHES, rows=math.ceil(keys / (KEYS_OF_A_ROW * BEFORE_THE_LAST)))


def measure(
    session: Session, cases: Sequence[Case], repeat: int, done: Callable[[Case, Recovery], None]
) -> list[Measured]:
    """``repeat`` trials of each case; the first trial of all warms the environment and is not counted.

    Raises UsageError where a trial gives no verdict that its figures could stand on.
    """
    _recovery(session, cases[0])
    return [Measured(case, [_counted(session, case, done) for _ in range(repeat)]) for case in cases]


def _counted(session: Session, case: Case, done: Callable[[Case, Recovery], None]) -> Recovery:
    found = _recovery(session, case)
    done(case, found)
    return found


def _recovery(session: Session, case: Case) -> Recovery:
    request = Request(
        SINK,
        FAULT,
        workload=workload_of(case.keys),
        conf=STATE_STORES[case.store],
        job=str(find_job(JOB).path),
        watch=False,
    )
    result = passed(session, request)
    found = recoveries_in(result.journal)
    if len(found) != 1:
        raise UsageError(f"a trial for the bench has {len(found)} recoveries instead of one: see {result.directory}")
    return found[0]


def fits(measured: Sequence[Measured], part: str = "load_state") -> list[Fit]:
    """A line for each state store that was measured with several numbers of keys."""
    found = []
    for store in dict.fromkeys(one.case.store for one in measured):
        pairs = [
            (one.case.keys / 1000, getattr(r, part))
            for one in measured
            if one.case.store == store
            for r in one.recoveries
        ]
        keys, seconds = zip(*pairs, strict=True)
        if len(set(keys)) > 1:
            slope, fixed = statistics.linear_regression(keys, seconds)
            explained = statistics.correlation(keys, seconds) ** 2 if len(set(seconds)) > 1 else 1.0
            found.append(Fit(store, fixed, slope, explained))
    return found
