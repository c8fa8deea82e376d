"""A batch whose driver dies several times in a row: sinks that count their tries give it up at some time, and those
that go on where the last driver stopped may lose the place the second time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ....faults import Fault, Plan, format_action
from ..effects import Effect, Family
from ..kinds import FAMILIES, kinds_of, last_effect
from ..limits import CRASHES, crashes
from ..points import ALL_DONE, KILL, Question, SweepPoint, crash_in, in_a_row, of_one_task, selector
from ..roles import MIDDLE
from ..steps import shown
from ..trace import Step, executed
from ._declaration import Strike

PARTS = 3
"""Of a batch that is written in pieces."""


def crash_loops(question: Question) -> Iterator[SweepPoint]:
    """The middle batch, each time struck where its first task has ended, before the sink's global commit, behind all of
    it, and before what is done for it last.

    At the first two, no replay can come out of the batch by another way: nothing of it is committed as a whole. Behind
    all of it, the first replay finds the batch as its driver has left it, and the next one as a replay has. Where the
    batch is written in pieces, also behind a third of them, behind another third, and behind all.
    """
    batch = question.middle
    seen = executed(question.trace, batch)
    for step in (Step("task.run", "after", seen.writing), Step("sink.commit", "before"), ALL_DONE):
        if step in seen.steps:
            plan = in_a_row(of_one_task(selector(step, batch), seen), KILL, CRASHES)
            detail = f"{CRASHES} times in a row"
            yield SweepPoint(shown(step, seen), format_action(KILL), MIDDLE, batch, plan, detail)
    if last := last_effect(question, batch):
        yield from _before_the_last(last, batch, crashes(question))
    for family in FAMILIES:
        yield from _in_pieces(question, family, batch)


def _before_the_last(last: Effect, batch: int, times: int) -> Iterator[SweepPoint]:
    """The tries that a sink counts are on record there, and the batch is not, as a rule: each driver asks for as much.
    Where the batch is, the replay does not come there: then the point with one such death stands for the other."""
    several = in_a_row(last.point("before", batch), KILL, times, apart=last.nth)
    once = Plan((several.faults[0], crash_in(batch)))
    here, way = Step(last.phase, "before"), f"in a row before {last.address}"
    for plan, what in ((several, f"{times} times in a row"), (once, "and behind all")):
        detail = f"{last.shown}, {what}"
        yield SweepPoint(here, format_action(KILL), MIDDLE, batch, plan, detail, alone=True, way=way)


def _in_pieces(question: Question, family: Family, batch: int) -> Iterator[SweepPoint]:
    """Behind the change with which each piece ends: of those that come several times the one that comes last. Reports
    are counted over restarts: whoever begins the batch anew comes there again, and so does whoever goes on."""
    kinds = kinds_of(question, family, batch)
    counts = Counter(kinds)
    last = next((kind for kind in reversed(kinds) if counts[kind] >= PARTS), None)
    if last is None:
        return
    pieces = counts[last]
    places = [last.point("after", batch, pieces * part // PARTS) for part in range(1, PARTS)]
    plan = Plan((*(Fault(place, (KILL,)) for place in places), crash_in(batch)))
    detail = f"{last.shown}, a third of {pieces} each time"
    yield SweepPoint(Step(family.phase, "after"), format_action(KILL), MIDDLE, batch, plan, detail)


STRIKE = Strike(35, (crash_loops,))
