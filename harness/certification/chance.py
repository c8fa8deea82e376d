"""Points that are there or not as time has it: what a thread of the sink's own does, such as a heartbeat, falls into a
batch by chance.

Where the two traces differ in how often a batch has such a point, it says nothing that no try reached it: it is left
out, and named. One that both have equally often must be reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...faults import Point
from ...faults.matching import matches
from .kinds import FAMILIES
from .points import Gap, Space, SweepPoint
from .results import PointResult, Store
from .trace import Event, reports, runs_of

PHASES = ("line", *(family.phase for family in FAMILIES))


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

    def _count_apart(self, at: Point) -> bool:
        anywhere = replace(at, where={name: value for name, value in at.where.items() if name != "batch"})
        return any(
            _count(reports(self.reference, batch), anywhere) != _count(reports(self.replay, batch), anywhere, run)
            for batch in self.batches
            for run in runs_of(self.replay, batch)[:1]
        )


def left_to_chance(space: Space, store: Store, traces: Traces) -> Space:
    """The space without the points that no try reached, and in which the traces differ: these are named."""
    left_out = [point for point in space.points if _was_missed(store.get(point.text)) and traces.differ(point)]
    kept = tuple(point for point in space.points if point not in left_out)
    return replace(space, points=kept, by_chance=tuple(map(_gap, left_out)))


def _gap(point: SweepPoint) -> Gap:
    reason = "it comes as time has it, and did not in any try"
    return Gap(point.at, point.action, point.role, ": ".join([*filter(None, [point.detail]), reason]))


def _was_missed(result: PointResult | None) -> bool:
    """Whether its trials said nothing but that."""
    return result is not None and result.verdict == "inconclusive" and not (result.reached or result.without_trial)


def _count(reported: Sequence[Event], point: Point, run: str | None = None) -> int:
    return sum(matches(point, event) for event in reported if run in (None, event.get("run")))
