"""A driver that is taken for dead before a change that only some batches make, and comes back when the next batch is
done. Who empties a table in a query's first batch, say, takes more than that batch's rows then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..effects import Effect
from ..kinds import FAMILIES, Kind, effects_of, kind_of
from ..points import Question, SweepPoint, end_of, evenly
from ..trace import Line, driver_lines
from ._declaration import Strike
from ._zombies import acting, next_or_last, of_changes, paused_before

AT_MOST = 3
"""Changes in a batch: the first, the last, and one between them."""


def elsewhere(question: Question) -> Iterator[SweepPoint]:
    """In the batch of each role, at changes that neither the middle batch has nor an earlier role's."""
    known = _has(question, question.middle)
    for role, batch in question.roles.items():
        found = _changes(question, batch, known)
        known |= _has(question, batch)
        last = next_or_last(question, batch)
        for change in evenly(found, AT_MOST):
            yield paused_before(change, role, batch, end_of(last), ", until the next batch" if last != batch else "")


def _has(question: Question, batch: int) -> set[object]:
    """The driver's lines, and the kinds of requests and changes of files."""
    kinds = {kind_of(effect) for family in FAMILIES for effect in effects_of(question, family, batch)}
    return {*driver_lines(question.trace, batch), *kinds}


def _changes(question: Question, batch: int, known: set[object]) -> Sequence[Line | Effect]:
    """Lines that were seen to change something, else lines that may; where no line is new, the first of each new kind
    of request and change of a file. A new directory takes nothing away."""
    for lines in (of_changes(question, batch), acting(question, batch)):
        if new := [line for line in lines if line not in known]:
            return new
    first: dict[Kind, Effect] = {}
    for effect in (one for family in FAMILIES for one in effects_of(question, family, batch)):
        if effect.where.get("op") != "mkdir" and kind_of(effect) not in known:
            first.setdefault(kind_of(effect), effect)
    return [*first.values()]


STRIKE = Strike(67, (elsewhere,))
