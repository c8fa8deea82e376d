"""Requests to services and changes of files: see :mod:`..effects`."""

from __future__ import annotations

from collections.abc import Iterator

from ..effects import effects
from ..files import FILES
from ..points import Gap, Question, SweepPoint
from ..requests import REQUESTS
from ._declaration import Strike

EFFECTS = (REQUESTS, FILES)


def all_effects(question: Question) -> Iterator[SweepPoint | Gap]:
    for family in EFFECTS:
        yield from effects(question, family)


STRIKE = Strike(20, (all_effects,))
