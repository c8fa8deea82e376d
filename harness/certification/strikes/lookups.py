"""A look at a service of the user's own, which says that it cannot tell just now: not every client raises that, and who
takes it for the answer that nothing is there writes a batch again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ....faults import Fault, Plan, format_action
from ....faults.protocols import protocol_of
from ..effects import Effect, Signature, first_runs_and_replay, steady
from ..points import Question, SweepPoint, crash_in
from ..requests import LOOKUPS, REQUESTS, refusal
from ..roles import MIDDLE
from ..trace import Step
from ._declaration import Strike


def lookups(question: Question) -> Iterator[SweepPoint]:
    """The first of each kind in the middle batch, and the first of each in its replay; there also of those that may be
    no look, which are refused in a first run anyway."""
    batch = question.middle
    *_, again = first_runs_and_replay(question, LOOKUPS, batch)
    *_, others = first_runs_and_replay(question, REQUESTS, batch)
    yield from _refused(steady(question, LOOKUPS, batch), batch)
    yield from _refused([*again, *filter(_may_look_up, others)], batch, (crash_in(batch),))


def _may_look_up(effect: Effect) -> bool:
    return effect.where["kind"] in protocol_of(str(effect.where["service"])).may_look_up


def _refused(found: Iterable[Effect], batch: int, before: tuple[Fault, ...] = ()) -> Iterator[SweepPoint]:
    first: dict[Signature, Effect] = {}
    for effect in found:
        first.setdefault(effect.signature, effect)
    for effect in first.values():
        for error in protocol_of(str(effect.where["service"])).refusals["before"]:
            action = refusal(error)
            plan = Plan((*before, Fault(effect.point("before", batch), (action,))))
            detail = f"in the replay, {effect.shown}" if before else effect.shown
            yield SweepPoint(Step(effect.phase, "before"), format_action(action), MIDDLE, batch, plan, detail)


STRIKE = Strike(22, (lookups,))
