"""A driver that is taken for dead before a request or a change of a file, whoever does that: a library may have looked
what is there, and writes now, within one line of the sink. And one that is, and never goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ....faults import Action, Fault
from ....faults.declarations import ITSELF
from ....faults.matching import matches
from ..kinds import FAMILIES, effects_of, last_effect
from ..points import KILL, Question, SweepPoint, end_of, evenly
from ..roles import MIDDLE
from ..trace import reports
from ._declaration import Strike
from ._zombies import acting, of_changes, paused_before, way_before

EFFECTS = 2
"""Requests, and changes of files, in the middle batch: the first and the last. Of a sink without lines that were seen
to change something there are twice as many, and the last one is struck in the first batch, too."""

FOR_GOOD = ", for good"


def at_effects(question: Question) -> Iterator[SweepPoint]:
    """Evenly in the middle batch; and the last one of the first batch where no line shows what the sink does."""
    batch = question.middle
    by_lines = bool(of_changes(question, batch))
    first = question.first_role
    for family in FAMILIES:
        for effect in evenly(effects_of(question, family, batch), EFFECTS if by_lines else 2 * EFFECTS):
            yield replace(paused_before(effect, MIDDLE, batch, end_of(batch)), way=way_before(effect))
        if first != MIDDLE and not by_lines:
            for effect in effects_of(question, family, question.roles[first])[-1:]:
                yield paused_before(effect, first, question.roles[first], end_of(question.roles[first]))


def for_good(question: Question) -> Iterator[SweepPoint]:
    """It never goes on: before the last request, else the last change of a file, else the last line that may change
    something. Whoever leaves a batch to the one that holds its lock then leaves it to nobody."""
    batch = question.middle
    lines = acting(question, batch)
    if change := last_effect(question, batch) or (lines[-1] if lines else None):
        yield paused_before(change, MIDDLE, batch, end_of(batch), FOR_GOOD, then=(KILL,))


def half_way(question: Question) -> Iterator[SweepPoint]:
    """It goes on when the other one has ended the batch, and dies behind its first change: as supervisors end such
    drivers once they reach them again. Who overwrites what is there has to get to the end. Where that change fails
    then, as it should, there is nothing to die behind: the point that has no death stands for this one."""
    batch = question.middle
    for family in FAMILIES:
        changes = [one for one in effects_of(question, family, batch) if one.where.get("op") != "mkdir"]
        first = changes[0] if changes else None
        if first is not None and first.steady and first.answered:
            done = replace(first.point("after", batch), nth=None)
            by_the_other = sum(matches(done, event) for event in reports(question.trace, batch))
            died = Fault(replace(done, nth=by_the_other + first.nth), (Action("kill", ITSELF),))
            point = paused_before(first, MIDDLE, batch, end_of(batch), ", and dies half-way", died)
            yield replace(point, way=way_before(first))


STRIKE = Strike(66, (at_effects, for_good, half_way))
