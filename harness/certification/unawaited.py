"""A change that the sink asks for and does not wait for: it is kept back while its batch is committed, and the driver
dies then. Spark never hands that batch over again, so what was kept back is lost. If the sink waits, the change is only
late.

Nobody can tell which batch a late change is of, so it is addressed by its number in the whole run, and has a run of its
own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ...faults import Action, Fault, Plan, Point, Value, format_action
from .points import KILL, Question, SweepPoint
from .roles import MIDDLE
from .trace import Event, Step

KINDS = {"request": ("service", "kind"), "file": ("op",)}
"""Phases of what the job does outside of its processes, and what makes a kind of it."""

LONGEST = 2.0
"""Seconds for which a change is kept back: by far more than a batch needs that does not wait for it."""


def unawaited(question: Question) -> Iterator[SweepPoint]:
    """The first change of each kind behind the hand-over of the middle batch."""
    batch = question.roles.get(MIDDLE)
    if batch is None:
        return
    for phase in KINDS:
        if question.phases is None or phase in question.phases:
            for change in _first_of_each_kind(question.trace, phase, batch):
                yield _point(change, batch)


def _first_of_each_kind(trace: Sequence[Event], phase: str, batch: int) -> Iterator[Point]:
    """Behind the batch's hand-over, however late, with its number among all of its kind in the run."""
    counts = Counter[tuple[str, ...]]()
    found: set[tuple[str, ...]] = set()
    handed_over = False
    for event in trace:
        if event["event"] != "point":
            continue
        if (event["phase"], event.get("edge")) == ("sink.write", "before"):
            handed_over = handed_over or event["batch"] == batch
        elif (event["phase"], event.get("edge")) == (phase, "before"):
            kind = tuple(str(event[name]) for name in KINDS[phase])
            counts[kind] += 1
            if handed_over and kind not in found:
                found.add(kind)
                where: dict[str, Value] = dict(zip(KINDS[phase], kind, strict=True))
                yield Point(phase, "before", where, counts[kind])


def _point(change: Point, batch: int) -> SweepPoint:
    next_one = Point("sink.write", "before", {"batch": batch + 1})
    kept = Fault(change, (Action("delay", None, {"longest": LONGEST}, until=next_one),))
    died = Fault(Point("batch.commit", "after", {"batch": batch}), (KILL,))
    shown = f"{' '.join(map(str, change.where.values()))}, kept back until its batch is committed"
    here = Step(change.phase, "before")
    return SweepPoint(here, format_action(KILL), MIDDLE, batch, Plan((kept, died)), shown, alone=True)
