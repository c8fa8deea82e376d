"""The points of a sweep, and what they are computed from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeVar

from ...faults import Action, Fault, Plan, Point, Value, format_action, format_plan
from .roles import MIDDLE
from .trace import Event, Executed, Line, Step, reports

One = TypeVar("One")

Profile = Literal["demo", "quick", "standard", "full"]
"""``quick``: the driver dies at each step of the middle batch. ``demo``: the same in all batches in rotation, so that
points can be packed. ``standard``: each step and action in the batch of every role, each line's first and last
execution, and second crashes in what only a replay runs. ``full``: besides, every execution of each line in every
role."""

STEPS_ONLY: tuple[Profile, ...] = ("demo", "quick")

KILL = Action("kill", "driver")
STOP = Action("stop", "driver")
POWER = Action("kill", "driver", {"unsynced": "lost"})
EMPTIED = Action("kill", "driver", {"unsynced": "emptied"})
"""The driver dies, and what is not synced is lost: all of that, or what was written to files, whose names are kept."""
FAIL = Action("fail")
DROP = Action("drop")
CRASH = Point("batch.commit", "before")
"""Where the driver dies first in a plan of two faults: all of the batch has been done, and all of it is replayed."""
ALL_DONE = Step("batch.commit", "before")
"""The step there."""


def crash_in(batch: int) -> Fault:
    """The driver's death behind all of a batch."""
    return Fault(Point(CRASH.phase, CRASH.edge, {"batch": batch}), (KILL,))


def end_of(batch: int) -> Point:
    return Point("batch.commit", "after", {"batch": batch})


ANY_BATCH = "any"
"""The role of points that know no batch."""


@dataclass(frozen=True)
class SweepPoint:
    """A point of the space, and the plan of the trial that covers it.

    ``at`` and ``action`` are those of the coverage matrix; ``detail`` tells points of one cell apart. ``batch`` is None
    for a step that knows no batch. ``alone``: not to be packed with others; ``exclusive``: its plan strikes what
    trials share, so that nothing else may run at the same time. ``required``: the sink asks for what this tries: where
    it cannot be tried, nothing has passed. ``way``: what it leads to, of points that may stand for each other; empty
    for others. ``seen_once``: one run alone has shown it, so that it may have come there by chance. ``traced``: its
    trial is, and what only that shows is struck after it.
    """

    at: Step | Line
    action: str
    role: str
    batch: int | None
    plan: Plan
    detail: str = ""
    alone: bool = False
    exclusive: bool = False
    required: bool = False
    way: str = ""
    seen_once: bool = False
    traced: bool = False

    @property
    def step(self) -> str:
        return str(self.at)

    @property
    def text(self) -> str:
        return format_plan(self.plan)

    @property
    def label(self) -> str:
        """The point for people: ``task.run:after, stage 2, fail, quiet batch``."""
        where = [] if self.batch is None else [f"{self.role} batch"]
        return ", ".join([self.step, *filter(None, [self.detail]), self.action, *where])

    def gap(self, reason: str) -> Gap:
        """Its cell, for a space that does not have the point."""
        return Gap(self.at, self.action, self.role, ": ".join(filter(None, [self.detail, reason])))


@dataclass(frozen=True)
class Gap:
    """A cell of the matrix that has no point, and why."""

    at: Step | Line
    action: str
    role: str
    reason: str

    @property
    def step(self) -> str:
        return str(self.at)


@dataclass(frozen=True)
class Space:
    """``impossible``: cells that this sink, master or environment cannot have; ``unreached``: steps that a sink of this
    kind must have, and that the trace lacks; ``untried``: required points that are not possible here; ``by_chance``:
    points that depend on time, and that no try reached."""

    points: tuple[SweepPoint, ...]
    impossible: tuple[Gap, ...] = ()
    unreached: tuple[Gap, ...] = ()
    untried: tuple[Gap, ...] = ()
    by_chance: tuple[Gap, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether nothing is missing that a certificate needs to pass."""
        return not (self.unreached or self.untried)

    def with_more(self, found: Iterable[SweepPoint | Gap]) -> Space:
        """With further points, each plan once; a gap is not possible."""
        known = {point.text: point for point in self.points}
        gaps = list(self.impossible)
        for one in found:
            if isinstance(one, SweepPoint):
                known.setdefault(one.text, one)
            elif one not in gaps:
                gaps.append(one)
        return replace(self, points=tuple(known.values()), impossible=tuple(gaps))


EMPTY = Space(())


@dataclass(frozen=True)
class Code:
    """What static analysis knows of the lines of the sink's modules.

    ``errors`` gives the exception classes that are caught where a line is executed that the others called, those of the
    innermost function first; those that state a fact about the data or the target are ``facts`` instead. ``calls``:
    whether the line's statement calls something; ``acts``: whether it may change something outside of its process;
    ``begins``: whether it is the statement's first line; ``may_fail``: whether anything that it calls may, for a reason
    outside of it; ``may_be_done``: whether what it calls last may have been done where it raises this class, although
    no other point shows that; ``leaves``: whether the nth execution of a line leaves a ``with``. ``numbers`` that the
    code names.
    """

    errors: Callable[[Sequence[Line]], Sequence[str]] = lambda lines: ()
    facts: Callable[[Sequence[Line]], Sequence[str]] = lambda lines: ()
    calls: Callable[[Line], bool] = lambda line: False
    acts: Callable[[Line], bool] = lambda line: False
    begins: Callable[[Line], bool] = lambda line: True
    numbers: frozenset[float] = frozenset()
    may_fail: Callable[[Line], bool] = lambda line: True
    may_be_done: Callable[[Line, str], bool] = lambda line, error: True
    leaves: Callable[[Line, int], bool] = lambda line, nth: False


@dataclass(frozen=True)
class Question:
    """What a space is computed from.

    ``roles`` maps a role to its batch; there is always a middle one. ``trace`` is that of a run without faults;
    ``replay`` that of a run whose driver was killed at batch.commit:before of each batch, empty where replays are not
    swept. ``refusal`` says why a plan cannot be carried out here, None if it can. ``phases`` are those that the sink's
    kind can have (None: all), ``required`` those that it must have, with their edges. ``durable``: the sink says that
    it survives a loss of power. ``known_failures``: it is held against the library, too. ``batches`` of the workload;
    None where one batch is asked for. ``servers``: of the sink's targets, by their services. ``reference_job``: the job
    takes what only reference jobs have to (``--starts``, ``--min-partitions``).
    """

    trace: Sequence[Event]
    roles: Mapping[str, int]
    refusal: Callable[[Plan], str | None]
    replay: Sequence[Event] = ()
    profile: Profile = "standard"
    required: frozenset[tuple[str, str | None]] = frozenset()
    phases: frozenset[str] | None = None
    code: Code = Code()
    durable: bool = False
    known_failures: bool = False
    batches: int | None = None
    servers: Sequence[str] = ()
    reference_job: bool = False

    def can_have(self, phase: str) -> bool:
        return self.phases is None or phase in self.phases

    @property
    def middle(self) -> int:
        """The middle batch."""
        return self.roles[MIDDLE]

    @cached_property
    def followed(self) -> frozenset[str]:
        """The roles in whose batches another one follows."""
        return frozenset(role for role, batch in self.roles.items() if has_next(self, batch))

    @property
    def first_role(self) -> str:
        """The role of the earliest batch."""
        return min(self.roles, key=self.roles.__getitem__)


def under(settings: Mapping[str, str], point: SweepPoint) -> SweepPoint:
    """The point, in a trial that sets these."""
    return replace(point, plan=replace(point.plan, settings=settings))


AFTER_A_FAULT = "after a fault at {step}"
"""The detail of a second fault."""


def has_next(question: Question, batch: int) -> bool:
    """Whether another batch follows."""
    return bool(reports(question.trace, batch + 1))


def in_turn(question: Question, turn: int, roles: Sequence[str], action: str) -> list[str]:
    """The role whose turn it is. An error that meets a batch which no other follows meets one of those with another
    behind them, too: what it leaves behind shows there, and the last batch of the default workload has a single row, so
    that nothing can be done to a part of it."""
    rounds = turn // len(roles) if len(roles) % 2 == 0 else 0  # or every second turn would be one of every second role
    role = roles[(turn + rounds) % len(roles)]
    followed = [other for other in roles if other in question.followed]
    if action == KILL.name or role in followed or not followed:
        return [role]
    return [role, followed[turn // (2 * len(roles)) % len(followed)]]


def then(plan: Plan, fault: Fault) -> Plan:
    """The plan, and another fault behind its own."""
    return replace(plan, faults=(*plan.faults, fault))


def dies_behind(point: SweepPoint) -> SweepPoint:
    """What a point does to its batch, and then the driver's death behind that batch: what is in its memory is gone.

    One run alone has shown that the first of the two faults lands.
    """
    assert point.batch is not None
    plan = then(point.plan, Fault(end_of(point.batch), (KILL,)))
    details = [AFTER_A_FAULT.format(step=point.step), *([point.detail] if point.detail else []), point.action]
    here = Step("batch.commit", "after")
    behind = SweepPoint(here, format_action(KILL), point.role, point.batch, plan, ", ".join(details))
    return replace(behind, alone=point.alone, seen_once=True)


def selector(step: Step, batch: int, nth: int | None = None) -> Point:
    """The point of a plan that stands for a step of a batch."""
    where: dict[str, int] = {"batch": batch}
    where |= {} if step.stage is None else {"stage": step.stage}
    where |= {} if step.row is None else {"row": step.row}
    return Point(step.phase, step.edge, where, nth)  # type: ignore[arg-type]


def line_at(line: Line, batch: int | None, nth: int) -> Point:
    """The point of a plan that stands for the nth execution of a line in a batch; None: in any."""
    where: dict[str, Value] = {"file": line.file, "line": line.line}
    where |= {} if batch is None else {"batch": batch}
    return Point("line", None, where, nth)


def in_a_row(at: Point, action: Action, times: int, apart: int = 1) -> Plan:
    """The same at the first ``times`` reports of a point; or at each report that many ``apart``, where each run comes
    there so often."""
    return Plan(tuple(Fault(replace(at, nth=apart * turn), (action,)) for turn in range(1, times + 1)))


def of_one_task(at: Point, seen: Executed) -> Point:
    """A task's step in one of the stage's tasks that were ``seen``: the next report is that of its next attempt or run,
    not of another task."""
    stage = at.where.get("stage")
    return at if stage is None else replace(at, where={**at.where, "partition": seen.partitions.get(int(stage), 0)})


def evenly(found: Sequence[One], most: int) -> Sequence[One]:
    """So many of them at most, the first and the last among these.

    >>> evenly(range(1, 10), 3), evenly(range(1, 10), 1), evenly(range(1, 3), 3)
    ([1, 5, 9], [1], range(1, 3))
    """
    if len(found) <= most:
        return found
    return [found[round(turn * (len(found) - 1) / max(1, most - 1))] for turn in range(most)]
