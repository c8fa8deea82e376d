"""A change that the sink asks for and does not wait for: it is kept back while its batch is committed, and the driver
dies then. Spark never hands that batch over again, so what was kept back is lost. If the sink waits, the change is only
late.

A change that no batch is known for, because it came when none was under way, is addressed by its number in the whole
run. That is struck in the first batch, where the number is small, however many such changes time alone brings about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ....faults import Action, Fault, Plan, Point
from ..limits import patience
from ..points import KILL, Question, SweepPoint
from ..roles import MIDDLE
from ..trace import Event, Step, reports, runs_of
from ._declaration import Strike

KINDS = {"request": ("service", "kind"), "file": ("op",)}
"""Phases of what the job does outside of its processes, and what makes a kind of it."""

Kind = tuple[str, ...]


def unawaited(question: Question) -> Iterator[SweepPoint]:
    """The first change of each kind: in the middle batch, else behind the hand-over of the first one."""
    for phase in KINDS:
        if question.can_have(phase):
            yield from _of_phase(question, phase)


def _of_phase(question: Question, phase: str) -> Iterator[SweepPoint]:
    middle, longest = question.middle, patience(question)
    steady = _kinds(reports(question.trace, middle), phase)
    if again := runs_of(question.replay, middle)[:1]:
        of_first_run = [event for event in reports(question.replay, middle) if event.get("run") in again]
        known = _kinds(of_first_run, phase)
        steady = [kind for kind in steady if kind in known]
    for kind in steady:
        change = Point(phase, "before", {**dict(zip(KINDS[phase], kind, strict=True)), "batch": middle}, 1)
        yield _point(change, kind, MIDDLE, middle, longest)
    role = question.first_role
    for kind, number in _behind(question.trace, phase, question.roles[role]):
        if kind not in steady:
            change = Point(phase, "before", dict(zip(KINDS[phase], kind, strict=True)), number)
            yield _point(change, kind, role, question.roles[role], longest, alone=True)


def _kinds(reported: Sequence[Event], phase: str) -> list[Kind]:
    return list(dict.fromkeys(_kind(event) for event in reported if _begins(event, phase)))


def _behind(trace: Sequence[Event], phase: str, batch: int) -> Iterator[tuple[Kind, int]]:
    """The first change of each kind behind the batch's hand-over, however late: its number in the run."""
    counts = Counter[Kind]()
    found: set[Kind] = set()
    handed_over = False
    for event in trace:
        if event["event"] != "point":
            continue
        if (event["phase"], event.get("edge"), event.get("batch")) == ("sink.write", "before", batch):
            handed_over = True
        elif _begins(event, phase):
            kind = _kind(event)
            counts[kind] += 1
            if handed_over and kind not in found:
                found.add(kind)
                yield kind, counts[kind]


def _begins(event: Event, phase: str) -> bool:
    """Whether a change begins there; what comes before the query's start has an address of its own."""
    return (event["phase"], event.get("edge")) == (phase, "before") and "when" not in event


def _kind(event: Event) -> Kind:
    return tuple(str(event[name]) for name in KINDS[event["phase"]])


def _point(change: Point, kind: Kind, role: str, batch: int, longest: float, *, alone: bool = False) -> SweepPoint:
    next_one = Point("sink.write", "before", {"batch": batch + 1})
    delay = Action("delay", None, {"longest": longest}, until=next_one)
    died = Fault(Point("batch.commit", "after", {"batch": batch}), (KILL,))
    detail = f"{' '.join(kind)}, kept back while its batch is committed"
    plan = Plan((Fault(change, (delay,)), died))
    return SweepPoint(Step(change.phase, "before"), delay.name, role, batch, plan, detail, alone=alone)


STRIKE = Strike(55, (unawaited,))
