"""What a kind of fault declares of itself: at which points a sweep strikes with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..points import Gap, Question, SweepPoint


@dataclass(frozen=True)
class Strike:
    """``points`` compute points, and cells without one, from the traces. Strikes of a lower ``order`` are swept first.
    ``steps_only``: also part of the profiles that sweep nothing but steps."""

    order: int
    points: Sequence[Callable[[Question], Iterable[SweepPoint | Gap]]]
    steps_only: bool = False
