"""A driver that is taken for dead before a request or a change of a file, whoever does that: a library may have looked
what is there, and writes now, within one line of the sink. And one that is, and never goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from ....faults import Action, Fault
from ....faults.declarations import ITSELF
from ....faults.matching import matches
from ..effects import Effect, Family, first_of_each
from ..kinds import FAMILIES, effects_of, kind_of, last_effect
from ..points import KILL, Question, SweepPoint, end_of, evenly
from ..requests import REQUESTS, endings
from ..roles import MIDDLE
from ..trace import Step, reports
from ._declaration import Strike
from ._zombies import BESIDE, acting, kept, of_changes, one_of_several, paused, paused_before, until_its_end

EFFECTS = 2
"""Requests, and changes of files, in the middle batch: the first and the last. Of a sink without lines that were seen
to change something there are twice as many, and the last one is struck in the first batch, too."""
ENDINGS = 4
"""Requests that end something, before which it stands still as well. A COMMIT by leaving ``with`` comes behind all
lines inside."""

TOGETHER = 3
"""Kinds of requests that two drivers make at once."""
AT_ONCE = ", until the other one asks for the same"

MIXED, SEVERAL = 2, 3
"""The kinds of which a batch has the most requests, and how many of each at least, so that those of two drivers mix."""
MIDST = ", until both are in the midst"

FOR_GOOD = ", for good"
TAKING = 3
"""Changes that empty or remove a file."""


def at_effects(question: Question) -> Iterator[SweepPoint]:
    """Evenly in the middle batch, of files those whose name both drivers use, and before what ends something; and the
    last one of the first batch where no line shows what the sink does."""
    batch = question.middle
    first = question.first_role
    for family in FAMILIES:
        for effect in _chosen(question, family):
            yield until_its_end(effect, batch)
        if first != MIDDLE and not of_changes(question, batch):
            for effect in effects_of(question, family, question.roles[first])[-1:]:
                yield paused_before(effect, first, question.roles[first], end_of(question.roles[first]))


def _chosen(question: Question, family: Family) -> list[Effect]:
    found = effects_of(question, family, question.middle)
    by_lines = bool(of_changes(question, question.middle))
    named = [one for one in found if one is found[0] or one is found[-1] or _is_shared(one)]
    chosen = [*evenly(named, EFFECTS if by_lines else 2 * EFFECTS)]
    if family is REQUESTS:
        chosen += [one for one in evenly(endings(found), ENDINGS) if one not in chosen]
    return chosen


def _is_shared(effect: Effect) -> bool:
    """Whether two drivers ask for the very same, or change the same file: not where its name is new in each run."""
    return "*" not in str(effect.where.get("path", ""))


def at_the_same_time(question: Question) -> Iterator[SweepPoint]:
    """It goes on when the other driver is about to ask for the same: both requests are with the service at once, as
    where a driver dies while its request is carried out. One statement that looks and writes then does not see what the
    other one writes."""
    batch = question.middle
    asked = [one for one in first_of_each(effects_of(question, REQUESTS, batch)) if one.steady]
    for effect in evenly(asked, TOGETHER):
        until = effect.point("before", batch)
        yield one_of_several(paused_before(effect, MIDDLE, batch, until, AT_ONCE), effect)


def in_the_midst(question: Question) -> Iterator[SweepPoint]:
    """Behind its first request of a kind, until the other driver is behind its own first one, too; there that waits
    until this one has ended the batch. What both of them write lies mixed then: who reads all that lies between the
    first row and the last one of a batch has rows of the other one as well."""
    batch = question.middle
    if not question.can_have(REQUESTS.phase):
        return
    asked = Counter(map(kind_of, REQUESTS.of_batch(question.trace, batch)))
    for kind, times in asked.most_common(MIXED):
        if times < SEVERAL:
            return
        second = kind.point("before", batch, 2)
        other = kept(kind.point("before", batch, 2 + 2), batch, BESIDE)  # a fault counts the reports of both
        point = paused(Step(kind.phase, "before"), second, MIDDLE, batch, second, f"{MIDST}, {kind.shown}", other)
        yield replace(point, seen_once=True, way=f"taken for dead{MIDST}, {kind.shown}")


def for_good(question: Question) -> Iterator[SweepPoint]:
    """It never goes on: before the last request, else the last change of a file, else the last line that may change
    something. Whoever leaves a batch to the one that holds its lock then leaves it to nobody."""
    batch = question.middle
    lines = acting(question, batch)
    if change := last_effect(question, batch) or (lines[-1] if lines else None):
        yield paused_before(change, MIDDLE, batch, end_of(batch), FOR_GOOD, then=(KILL,))


def half_way(question: Question) -> Iterator[SweepPoint]:
    """It goes on when the other one has ended the batch, and dies behind its first change, or behind one that empties a
    file or removes one: as supervisors end such drivers once they reach them again. Who overwrites what is there has to
    get to the end. Where that change fails then, as it should, there is nothing to die behind: the point that has no
    death stands for this one."""
    batch = question.middle
    for family in FAMILIES:
        changes = [one for one in effects_of(question, family, batch) if one.where.get("op") != "mkdir"]
        taking = [one for one in changes if one.empties or one.where.get("op") == "delete"]
        shared = evenly([one for one in taking if _is_shared(one)], TAKING)
        others = evenly([one for one in taking if one not in shared], TAKING - len(shared))
        chosen = {one.address: one for one in (*changes[:1], *shared, *others) if one.steady and one.answered}
        struck = [one.address for one in _chosen(question, family)]
        for change in chosen.values():
            if change.address not in struck:
                yield until_its_end(change, batch)
            yield _half_way(question, change, batch)


def _half_way(question: Question, change: Effect, batch: int) -> SweepPoint:
    done = replace(change.point("after", batch), nth=None)
    by_the_other = sum(matches(done, event) for event in reports(question.trace, batch))
    died = Fault(replace(done, nth=by_the_other + change.nth), (Action("kill", ITSELF),))
    point = paused_before(change, MIDDLE, batch, end_of(batch), ", and dies half-way", died)
    return one_of_several(point, change)


STRIKE = Strike(66, (at_effects, at_the_same_time, in_the_midst, for_good, half_way))
