"""A look at a service of the user's own, which says that it cannot tell just now: not every client raises that, and who
takes it for the answer that nothing is there writes a batch again. In a batch, and where a driver starts: some sinks
ask once, when the job starts, and know from then on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ....faults import Fault, Plan, Point, format_action
from ....faults.matching import matches
from ....faults.protocols import OWN, protocol_of
from ..effects import Effect, first_of_each, first_runs_and_replay, steady
from ..points import ANY_BATCH, Question, SweepPoint, crash_in
from ..requests import LOOKUPS, REQUESTS, refusal
from ..roles import MIDDLE
from ..starts import AGAIN, reports_of_starts, starts_in_the_replay
from ..trace import Event, Step
from ._declaration import Strike


def lookups(question: Question) -> Iterator[SweepPoint]:
    """The first of each kind in the middle batch, and the first of each in its replay; there also of those that may be
    no look, which are refused in a first run anyway."""
    batch = question.middle
    *_, again = first_runs_and_replay(question, LOOKUPS, batch)
    *_, others = first_runs_and_replay(question, REQUESTS, batch)
    yield from _refused(steady(question, LOOKUPS, batch), batch)
    yield from _refused([*again, *filter(_may_look_up, others)], batch, (crash_in(batch),))


def at_the_start(question: Question) -> Iterator[SweepPoint]:
    """The first of each kind, and of what else is asked of such a service, in the start after the middle batch's
    crash: what that finds there, no first start does."""
    crash = crash_in(question.middle)
    _, later = starts_in_the_replay(question, reports_of_starts)
    start = later.get(question.middle, ())
    for family in (LOOKUPS, REQUESTS):
        asked = Point(family.phase, "before", {"when": "start"})
        first = family.read(_reports_of(asked, question.trace))
        for effect in first_of_each(one for one in family.read(_reports_of(asked, start)) if _is_own(one)):
            nth = effect.nth + sum(one.where == effect.where for one in first)
            at = replace(asked, where={**effect.where, **asked.where}, nth=nth)
            yield from _answered(effect, at, (crash,), ANY_BATCH, f"{AGAIN}, {effect.shown}")


def _reports_of(at: Point, journal: Sequence[Event]) -> list[Event]:
    return [event for event in journal if event["event"] == "point" and matches(at, event)]


def _is_own(effect: Effect) -> bool:
    return protocol_of(str(effect.where["service"])) is OWN


def _may_look_up(effect: Effect) -> bool:
    return effect.where["kind"] in protocol_of(str(effect.where["service"])).may_look_up


def _refused(found: Iterable[Effect], batch: int, before: tuple[Fault, ...] = ()) -> Iterator[SweepPoint]:
    for effect in first_of_each(found):
        detail = f"in the replay, {effect.shown}" if before else effect.shown
        yield from _answered(effect, effect.point("before", batch), before, MIDDLE, detail)


def _answered(effect: Effect, at: Point, before: tuple[Fault, ...], role: str, detail: str) -> Iterator[SweepPoint]:
    """By each error of the service; outside of every batch in a run of its own."""
    batch = None if role == ANY_BATCH else int(at.where["batch"])
    for error in protocol_of(str(effect.where["service"])).refusals["before"]:
        action = refusal(error)
        plan = Plan((*before, Fault(at, (action,))))
        here, shown = Step(effect.phase, "before"), format_action(action)
        yield SweepPoint(here, shown, role, batch, plan, detail, alone=batch is None)


STRIKE = Strike(22, (lookups, at_the_start))
