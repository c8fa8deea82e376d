"""Requests that take longer than their client may wait, and a driver that comes back late: whoever gives up after a
while and asks again has asked twice, and what is kept for a while only is gone by then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from ....faults import Action, Fault, Plan, Point, format_action
from ....faults.protocols import protocol_of
from ..effects import Effect, Place, first_of_each
from ..files import FILES
from ..kinds import effects_of
from ..points import ALL_DONE, KILL, Question, SweepPoint, crash_in, evenly, selector
from ..requests import REQUESTS, first_of_each_kind
from ..roles import MIDDLE
from ..trace import Step, executed, reports
from ._declaration import Strike

TAKES = 16.0
"""Seconds that an answer takes: more than clients are commonly told to wait (5, 10, 15)."""

LONGEST = 20.0
"""Seconds that a request takes at most: enough for a client that gives up after ten, asks again and goes on. Where a
protocol's clients wait for longer by themselves, it is more than that."""

GIVING_UP = 5.0
"""Seconds from then until the next batch has come as far."""

SLOW = Action("latency", None, {"of": 1.0, "for": 25.0})
"""Two seconds for each question and its answer: readers are commonly told to wait for one or two in all. It is over
before a job that fails meanwhile has been started again so often that it counts as stuck."""

NAMING = ("rename", "link", "delete")
"""Changes by which what was prepared in files becomes what readers see."""

AT_MOST = 4
"""Requests, and such changes: each of these trials takes longer than a minute."""

AWAY = 75.0
"""Seconds from the driver's death to its successor's start: more than the minute for which markers are commonly kept,
and transactions of Kafka's producers by default (transaction.timeout.ms); brokers look for these every ten seconds."""


def slow_requests(question: Question) -> Iterator[SweepPoint]:
    """The first request of each kind, on its way out and on its way back, the roles in rotation: on its way back those
    of batches that ask for several.

    One that its client has given up arrives all the same: on its way out it takes until the next batch is as far as its
    own was, if the client goes on without it. So a commit that was asked for twice may be that of the next transaction
    (KIP-890), and an old write may come after a new one. Behind such a commit the driver dies, too, before its own one.
    """
    asked = _asked(question)
    for turn, (places, edge) in enumerate(product(_answered(question), ("before", "after"))):
        followed = [place for place in places if in_the_next_batch(question, place[1], question.roles[place[0]])]
        possible = (followed if edge == "before" else _of_several(asked, places)) or places
        role, effect = possible[turn % len(possible)]
        batch = question.roles[role]
        overtaking = in_the_next_batch(question, effect, batch) if edge == "before" else None
        if overtaking is None:
            yield _point(effect, edge, role, batch, Action("delay", None, {"for": TAKES}))
            continue
        delay = _until(effect, overtaking)
        yield _point(effect, edge, role, batch, delay, ", until the next batch")
        if _ends_both(question, effect, batch):
            died = Fault(effect.point("before", batch + 1), (KILL,))
            yield _point(effect, edge, role, batch, delay, ", until the next batch, whose driver dies", died)


def _asked(question: Question) -> dict[str, Sequence[Effect]]:
    """All requests of the batch of each role."""
    return {role: REQUESTS.of_batch(question.trace, batch) for role, batch in question.roles.items()}


def _of_several(asked: Mapping[str, Sequence[Effect]], places: Sequence[Place]) -> list[Place]:
    """Those where more of its kind follow: behind a last one the service may refuse what is asked again."""
    return [
        (role, effect) for role, effect in places if sum(one.signature == effect.signature for one in asked[role]) > 1
    ]


def requests_begun_anew(question: Question) -> Iterator[SweepPoint]:
    """The first request of each kind, on its way out until its client has begun it anew: in the batches that ask for it
    the least often, these in rotation, since more of them may tell the service that one is missing.

    So one that was given up comes in the middle of what its client does instead: rows behind the removal of the first
    attempt's, or in the transaction after the one that was aborted (KIP-890).
    """
    asked = _asked(question)
    for turn, places in enumerate(_answered(question)):
        often = [sum(one.where == effect.where for one in asked[role]) for role, effect in places]
        fewest = [place for place, times in zip(places, often, strict=True) if times == min(often)]
        role, effect = fewest[turn % len(fewest)]
        batch = question.roles[role]
        anew = begun_anew(asked[role], effect, batch)
        yield _point(effect, "before", role, batch, _until(effect, anew), ", until it is begun anew")


def _answered(question: Question) -> list[list[Place]]:
    return [places for places in first_of_each_kind(question) if places[0][1].answered]


def begun_anew(of_batch: Sequence[Effect], effect: Effect, batch: int) -> Point:
    """Where the client of ``effect`` has come as far again: behind what it had asked for before it; where it asks for
    the same if there was nothing, or if that may have been refused for the moment, as by a coordinator that has not yet
    ended the transaction before. Meanwhile other processes ask for what they do without a fault."""
    asked = next(number for number, one in enumerate(of_batch) if one.address == effect.address)
    client = of_batch[asked].process
    earlier = [one for one in of_batch[:asked] if one.process == client and one.answered]
    nearest, edge = (earlier[-1], "after") if earlier and not _asked_again(earlier[-1]) else (effect, "before")
    others = [one for one in of_batch[asked + 1 :] if one.where == nearest.where and one.process != client]
    return replace(nearest.point(edge, batch), nth=len(others) + 1)


def _asked_again(effect: Effect) -> bool:
    return effect.where["kind"] in protocol_of(str(effect.where["service"])).asked_again


def _until(effect: Effect, other: Point) -> Action:
    """A delay until then, for as long as clients wait by themselves."""
    patience = protocol_of(str(effect.where["service"])).patience
    return Action("delay", None, {"longest": max(LONGEST, patience + GIVING_UP)}, until=other)


def _point(
    effect: Effect, edge: str, role: str, batch: int, delay: Action, detail: str = "", then: Fault | None = None
) -> SweepPoint:
    """What is seen of a request that comes in the next batch may be seen there: it has a run of its own."""
    plan = Plan((Fault(effect.point(edge, batch), (delay,)), *([then] if then else [])))
    shown = delay.name if delay.until else format_action(delay)
    here = Step(effect.phase, edge)
    return SweepPoint(here, shown, role, batch, plan, effect.shown + detail, alone=delay.until is not None)


def _ends_both(question: Question, effect: Effect, batch: int) -> bool:
    """Whether both this batch and the next one ask for nothing else behind what they ask for so."""
    last = [REQUESTS.of_batch(question.trace, one)[-1:] for one in (batch, batch + 1)]
    return all(found and found[0].where == effect.where for found in last)


def in_the_next_batch(question: Question, effect: Effect, batch: int) -> Point | None:
    """Where the batch behind ``batch`` has come as far as that had when it asked for ``effect``: behind the last change
    before it that both ask for, else where it is handed over. None if no batch follows."""
    following = {one.where["kind"]: one for one in REQUESTS.of_batch(question.trace, batch + 1)}
    if not reports(question.trace, batch + 1):
        return None
    own = list(REQUESTS.of_batch(question.trace, batch))
    addresses = [one.address for one in own]
    earlier = own[: addresses.index(effect.address)] if effect.address in addresses else []
    common = [one for one in earlier if one.answered and one.where["kind"] in following]
    if not common:
        return Point("sink.write", "before", {"batch": batch + 1})
    return Point(effect.phase, "after", {**common[-1].where, "batch": batch + 1}, 1)


def slow_recovery(question: Question) -> Iterator[SweepPoint]:
    """In the replay of the middle batch, all that passes between the job and its services: who looks for what was
    written before, and waits for a short while only, finds nothing."""
    batch = question.middle
    here = Step("sink.write", "before")
    if not REQUESTS.of_batch(question.trace, batch) or here not in executed(question.trace, batch).steps:
        return
    slow = Fault(replace(selector(here, batch), nth=2), (SLOW,))
    plan = Plan((crash_in(batch), slow))
    yield SweepPoint(here, format_action(SLOW), MIDDLE, batch, plan, "in the replay", alone=True)


def late_recovery(question: Question) -> Iterator[SweepPoint]:
    """In the middle batch: where a first half of it has been done, and behind all of it. What that left may be gone by
    then: a transaction that was decided to be committed, a staging table, a lock, a draft that has no name yet."""
    batch = question.middle
    steps = executed(question.trace, batch).steps
    for step in (Step("sink.commit", "before"), ALL_DONE):
        if step in steps:
            yield _late(step, selector(step, batch), batch)
    changed = effects_of(question, FILES, batch)
    naming = [one for one in changed[1:] if one.where["op"] in NAMING]  # before the very first nothing has been done
    asked = first_of_each(effects_of(question, REQUESTS, batch))[1:]
    for effect in (*evenly(asked, AT_MOST), *evenly(first_of_each(naming), AT_MOST)):
        yield _late(Step(effect.phase, "before"), effect.point("before", batch), batch, effect.shown)


def _late(here: Step, at: Point, batch: int, shown: str = "") -> SweepPoint:
    plan = Plan((Fault(at, (KILL, Action("restart", "driver", {"after": AWAY}))),))
    detail = ", ".join([*([shown] if shown else []), f"back after {AWAY:g} s"])
    return SweepPoint(here, format_action(KILL), MIDDLE, batch, plan, detail=detail, alone=True)


STRIKE = Strike(50, (slow_requests, requests_begun_anew, slow_recovery, late_recovery))
