"""Requests to services and changes of files: see :mod:`..effects`."""

from __future__ import annotations

from collections.abc import Iterator

from ..effects import effects
from ..kinds import FAMILIES
from ..points import Gap, Question, SweepPoint
from ._declaration import Strike


def all_effects(question: Question) -> Iterator[SweepPoint | Gap]:
    for family in FAMILIES:
        yield from effects(question, family)


STRIKE = Strike(20, (all_effects,))
