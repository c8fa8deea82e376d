"""Which points share a run of the job: at most one for each batch, so that a point costs one start of a driver; and
behind an error that may be caught none for the next batch, which is to show what that has left.

>>> from ...faults import Plan
>>> from .points import SweepPoint
>>> from .trace import Step
>>> points = [SweepPoint(Step("task.run", "after"), "fail", "first", batch, Plan()) for batch in (0, 1, 0)]
>>> [[point.batch for point in pack.points] for pack in packs(points, 5)]
[[0, 1], [0]]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...faults import Plan
from .attribution import Share
from .points import SweepPoint
from .recoveries import kills, shows_a_recovery
from .trace import Line


@dataclass(frozen=True)
class Pack:
    """Points that one run of the job covers, in the order of their batches; their plans set the same."""

    points: tuple[SweepPoint, ...]

    @property
    def exclusive(self) -> bool:
        """Whether nothing else may run meanwhile."""
        return any(point.exclusive for point in self.points)

    @property
    def plan(self) -> Plan:
        return Plan(tuple(fault for point in self.points for fault in point.plan.faults), self.points[0].plan.settings)

    @property
    def shares(self) -> list[Share]:
        """What of the run belongs to each point; each has a batch if there are several."""
        found: list[Share] = []
        first = 0
        for point in self.points:
            end = first + len(point.plan.faults)
            found.append(Share(frozenset(range(first, end)), point.batch or 0))
            first = end
        return found


def packs(points: Iterable[SweepPoint], most: int) -> list[Pack]:
    """Runs of at most ``most`` points, in the order of the points; those that run alone have a run each.

    Runs that need the environment to themselves come last.
    """
    single: list[Pack] = []
    shared: list[list[SweepPoint]] = []
    for point in points:
        if point.alone or point.batch is None or most < 2:
            single.append(Pack((point,)))
            continue
        place = next((pack for pack in shared if len(pack) < most and not _taken(pack, point)), None)
        if place is None:
            shared.append([point])
        else:
            place.append(point)
    found = [Pack(_in_order(pack)) for pack in shared] + single
    return sorted(found, key=lambda pack: pack.exclusive)


def of_each_kind(packs: Sequence[Pack], struck: Iterable[SweepPoint] = ()) -> tuple[list[Pack], list[Pack]]:
    """Runs that have a point of each kind that was not ``struck`` yet, those that add most of them first; and all the
    others. A kind is an action at a step, or in a file's lines."""
    first: list[Pack] = []
    left, seen = list(packs), _kinds(struck)
    while left:
        best = max(left, key=lambda pack: len(_kinds(pack.points) - seen))
        new = _kinds(best.points) - seen
        if not new:
            break
        left.remove(best)
        first.append(best)
        seen |= new
    return first, left


def _kinds(points: Iterable[SweepPoint]) -> set[tuple[str, str]]:
    return {(point.at.file if isinstance(point.at, Line) else point.step, point.action) for point in points}


def _taken(pack: Sequence[SweepPoint], point: SweepPoint) -> bool:
    """A run that takes what trials share from the others must be short: it is shared by such points only."""
    unlike = (pack[0].plan.settings, pack[0].exclusive) != (point.plan.settings, point.exclusive)
    return unlike or any(_meet(other, point) or _meet(point, other) for other in pack)


def _meet(one: SweepPoint, other: SweepPoint) -> bool:
    """Whether they strike the same batch, or the other strikes that behind an error of which ``one`` is to show what it
    leaves behind."""
    behind = other.batch == (one.batch or 0) + 1
    return other.batch == one.batch or (behind and shows_a_recovery(one) and not kills(one))


def _in_order(pack: Sequence[SweepPoint]) -> tuple[SweepPoint, ...]:
    return tuple(sorted(pack, key=lambda point: point.batch or 0))
