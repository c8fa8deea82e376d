"""A driver that stands still until another one has its batch: what the strikes of it share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter

from ....faults import Action, Fault, Plan, Point, format_action
from ..effects import Effect
from ..files import FILES
from ..points import Question, SweepPoint, end_of, has_next, line_at
from ..requests import REQUESTS
from ..roles import MIDDLE
from ..trace import WORKER, Event, Line, Step, driver_lines, line_of, reports

BESIDE = 5.0
"""Seconds that the other driver is kept at most in the middle of the same batch: whoever holds a lock there holds up
this one."""

LONGEST = 30.0
"""Seconds, but for those in which the driver that takes its place works on its start: what holds a lock goes on then,
and so does whoever waits for it."""


LATEST = 1
"""The last batch that is small enough for a task that is taken for lost: it has all its rows by then, and could not ask
for more of a broker that it does not reach, or of a JVM that is about to end."""


def given_up_after(seconds: int) -> dict[str, str]:
    """Properties of Spark by which a driver gives an executor up that it has not heard of for so long."""
    return {
        "spark.executor.heartbeatInterval": "1s",
        "spark.network.timeoutInterval": "2s",
        "spark.storage.blockManagerHeartbeatTimeoutMs": f"{seconds}s",
    }


def small_batch(question: Question) -> tuple[str, int] | None:
    """The last one that is small enough, swept, and followed by another one, with its role."""
    small = [(role, batch) for role, batch in question.roles.items() if batch <= LATEST and role in question.followed]
    return max(small, key=itemgetter(1), default=None)


def paused(
    here: Step | Line,
    at: Point,
    role: str,
    batch: int | None,
    until: Point,
    detail: str,
    *more: Fault,
    first: Sequence[Action] = (),
    then: Sequence[Action] = (),
    longest: float = LONGEST,
    before: Sequence[Fault] = (),
) -> SweepPoint:
    pause = Action("pause", "driver", {"longest": longest}, until=until)
    shown = format_action(Action("pause", "driver"))
    plan = Plan((*before, Fault(at, (*first, pause, *then)), *more))
    return SweepPoint(here, shown, role, batch, plan, f"taken for dead{detail}", alone=True)


def paused_before(
    change: Line | Effect,
    role: str,
    batch: int,
    until: Point,
    detail: str = "",
    *more: Fault,
    then: Sequence[Action] = (),
) -> SweepPoint:
    """Before a line of the batch, a request or a change of a file."""
    at = point_of(change, batch)
    if isinstance(change, Line):
        return paused(change, at, role, batch, until, detail, *more, then=then)
    here = Step(change.phase, "before")
    return paused(here, at, role, batch, until, f"{detail}, {change.shown}", *more, then=then)


def kept(at: Point, batch: int, longest: float) -> Fault:
    """The other driver waits there for this one to end the batch."""
    ended = Point("sink.write", "after", {"batch": batch})
    return Fault(at, (Action("delay", None, {"longest": longest}, until=ended),))


def until_its_end(change: Line | Effect, batch: int) -> SweepPoint:
    """Before a change of the middle batch, until the other driver has ended that batch."""
    return one_of_several(paused_before(change, MIDDLE, batch, end_of(batch)), change)


def one_of_several(point: SweepPoint, change: Line | Effect) -> SweepPoint:
    """Of the points before the same change: where it cannot be reached, another one stands for it."""
    where = change if isinstance(change, Line) else change.address
    return replace(point, way=f"taken for dead before {where}")


def point_of(change: Line | Effect, batch: int) -> Point:
    return line_at(change, batch, 1) if isinstance(change, Line) else change.point("before", batch)


def next_or_last(question: Question, batch: int) -> int:
    """The batch behind this one; this one, if there is none."""
    return batch + 1 if has_next(question, batch) else batch


def acting(question: Question, batch: int) -> list[Line]:
    """The driver's lines that may change something in a batch, in the order of their first executions."""
    return [line for line in dict.fromkeys(driver_lines(question.trace, batch)) if question.code.acts(line)]


def of_changes(question: Question, batch: int) -> list[Line]:
    """Those that were seen to."""
    changing = _changing(question.trace, batch)
    return [line for line in acting(question, batch) if line in changing]


def _changing(trace: Sequence[Event], batch: int) -> set[Line]:
    """The lines of the driver after which something left the job, before its next one."""
    line: Line | None = None
    found: set[Line] = set()
    for event in reports(trace, batch):
        if event["phase"] == "line" and event.get("role") != WORKER:
            line = line_of(event)
        elif line and event["phase"] in (REQUESTS.phase, FILES.phase):
            found.add(line)
    return found
