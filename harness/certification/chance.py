"""Points that are there or not as time has it: what a thread of the sink's own does, such as a heartbeat, falls into a
batch by chance.

Where the two traces differ in how often a batch has such a point, it says nothing that no try reached it: it is left
out, and named. So it is where a try, in which no fault has struck before, committed the batch with fewer of them than
the reference: a sink that flushes by age does so more often where each of its lines is reported. And so it is where a
try committed a batch without what one run alone has shown. What is in the traces and the tries equally often must be
reached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from ...faults import Point
from ...faults.matching import matches
from .kinds import EFFECT_PHASES
from .points import Space, SweepPoint
from .requests import LOOKUPS
from .results import PointResult, Store
from .trace import Event, reports, runs_of

REASON = "it comes as time has it, and did not in any try"

PHASES = ("line", LOOKUPS.phase, *EFFECT_PHASES)


@dataclass(frozen=True)
class Traces:
    """The journals of the reference and of the traced replay, and the batches of the sweep."""

    reference: Sequence[Event]
    replay: Sequence[Event]
    batches: Sequence[int]

    def differ(self, point: SweepPoint) -> bool:
        """Whether a batch had what a fault of the point strikes more or less often in the reference than in the run
        that was killed behind it."""
        struck = [fault.at for fault in point.plan.faults]
        return any(self._count_apart(at) for at in struck if isinstance(at, Point) and at.phase in PHASES)

    def has_more(self, point: SweepPoint, tried: Sequence[Event]) -> bool:
        """Whether the reference has what the point's only fault strikes more often than a try that has some of it, and
        has committed the batch."""
        ats = [fault.at for fault in point.plan.faults]
        if point.batch is None or len(ats) != 1 or not isinstance(ats[0], Point) or ats[0].phase not in PHASES:
            return False
        seen = reports(tried, point.batch)
        return _ended(point, tried) and 0 < _count(seen, ats[0]) < _count(reports(self.reference, point.batch), ats[0])

    def _count_apart(self, at: Point) -> bool:
        anywhere = replace(at, where={name: value for name, value in at.where.items() if name != "batch"})
        return any(
            _count(reports(self.reference, batch), anywhere) != _count(reports(self.replay, batch), anywhere, run)
            for batch in self.batches
            for run in runs_of(self.replay, batch)[:1]
        )


JournalOf = Callable[[PointResult], Sequence[Event]]


def left_to_chance(space: Space, store: Store, traces: Traces, journal: JournalOf) -> Space:
    """The space without the points that no try reached, and in which the traces differ, or the last try from them:
    these are named. ``journal`` is that of a result's trial."""

    def by_chance(point: SweepPoint) -> bool:
        result = store.get(point.text)
        if not _was_missed(result):
            return False
        tried = journal(result)
        return traces.differ(point) or traces.has_more(point, tried) or (point.seen_once and _ended(point, tried))

    left_out = [point for point in space.points if by_chance(point)]
    kept = tuple(point for point in space.points if point not in left_out)
    return replace(space, points=kept, by_chance=tuple(point.gap(REASON) for point in left_out))


def _ended(point: SweepPoint, tried: Sequence[Event]) -> bool:
    """Whether a try has committed the point's batch."""
    seen = [] if point.batch is None else reports(tried, point.batch)
    return any((one["phase"], one.get("edge")) == ("batch.commit", "after") for one in seen)


def _was_missed(result: PointResult | None) -> TypeGuard[PointResult]:
    """Whether its trials said nothing but that."""
    return result is not None and result.verdict == "inconclusive" and not (result.reached or result.without_trial)


def _count(reported: Sequence[Event], point: Point, run: str | None = None) -> int:
    return sum(matches(point, event) for event in reported if run in (None, event.get("run")))
