"""Kinds of what a batch does outside of the job: requests of one service's kind, changes of files by one operation in
one directory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ...faults import Point, Value
from .effects import Effect, Family, steady
from .files import FILES, alike
from .points import Question
from .requests import REQUESTS
from .trace import reports

FAMILIES = (REQUESTS, FILES)
EFFECT_PHASES = tuple(family.phase for family in FAMILIES)


@dataclass(frozen=True)
class Kind:
    """``where`` chooses all of the kind in any batch."""

    phase: str
    where: tuple[tuple[str, Value], ...]

    @property
    def shown(self) -> str:
        return " ".join(str(value) for _, value in self.where)

    def point(self, edge: Literal["before", "after"], batch: int, nth: int) -> Point:
        return Point(self.phase, edge, {**dict(self.where), "batch": batch}, nth)


def effects_of(question: Question, family: Family, batch: int) -> Sequence[Effect]:
    """Those that every run of the batch has; none of a family that is not swept."""
    return steady(question, family, batch) if question.can_have(family.phase) else ()


def last_effect(question: Question, batch: int) -> Effect | None:
    """Its last request, else its last change of a file."""
    return next((found[-1] for family in FAMILIES if (found := effects_of(question, family, batch))), None)


def in_tasks(question: Question, batch: int, stage: int | None, phases: Sequence[str] = EFFECT_PHASES) -> list[bool]:
    """Of each request and change of a file of a batch, or of one of these, whether a task of the stage ran then."""
    running, found = 0, []
    for event in reports(question.trace, batch):
        if event["phase"] == "task.run" and event.get("stage") == stage:
            running += 1 if event["edge"] == "before" else -1
        elif event["phase"] in phases and event["edge"] == "before":
            found.append(running > 0)
    return found


def kind_of(effect: Effect) -> Kind:
    return Kind(effect.phase, tuple((alike(effect) if effect.phase == FILES.phase else effect.where).items()))


def kinds_of(question: Question, family: Family, batch: int) -> list[Kind]:
    """The kind of each effect that every run of the batch has and that is known to be answered, one after the other."""
    return answered_kinds(steady(question, family, batch))


def answered_kinds(found: Iterable[Effect]) -> list[Kind]:
    return [kind_of(one) for one in found if one.answered]


def kinds_in(question: Question, batch: int) -> Counter[Kind]:
    """How many of each kind there are, in the order in which the kinds come."""
    return Counter(kind for family in FAMILIES for kind in kinds_of(question, family, batch))
