"""The points of a sweep: each step that a fault-free reference trace recorded, as a plan that kills or fails there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..faults import Action, Fault, Plan, Point, format_plan

Kind = Literal["phases", "lines", "all"]

SWEPT = (
    "query.start",
    "batch.offsets",
    "sink.write",
    "task.run",
    "task.row",
    "task.commit",
    "sink.commit",
    "batch.commit",
)
KILL = Action("kill", "driver")
FAIL = Action("fail")
ROW = 5
"""The row of a task at which task.row is swept."""


@dataclass(frozen=True)
class SweepPoint:
    """One trial of a sweep. ``step`` names the point for people, ``plan`` is what is run there."""

    step: str
    plan: Plan

    @property
    def text(self) -> str:
        return format_plan(self.plan)


def sweep(trace: Sequence[Mapping[str, Any]], batch: int, kind: Kind = "all") -> list[SweepPoint]:
    """The points of ``batch`` in the order in which the trace first reached them."""
    reports = [event for event in trace if event["event"] == "point"]
    found: list[SweepPoint] = []
    if kind in ("phases", "all"):
        found += _phases(reports, batch)
        found += _first_task_alone(reports, batch)
    if kind in ("lines", "all"):
        found += _lines(reports, batch)
    return found


def _phases(reports: Iterable[Mapping[str, Any]], batch: int) -> list[SweepPoint]:
    seen: dict[tuple[str, str], None] = {}
    for report in reports:
        phase = report["phase"]
        if phase in SWEPT and report.get("edge") and (phase == "query.start" or report.get("batch") == batch):
            seen.setdefault((phase, report["edge"]))
    return [_phase(phase, edge, batch) for phase, edge in seen]


def _phase(phase: str, edge: Any, batch: int) -> SweepPoint:
    where: dict[str, int] = {} if phase == "query.start" else {"batch": batch}
    if phase == "task.row":
        where["row"] = ROW
    return SweepPoint(f"{phase}:{edge}", Plan((Fault(Point(phase, edge, where), (KILL,)),)))


def _first_task_alone(reports: Sequence[Mapping[str, Any]], batch: int) -> list[SweepPoint]:
    """In each stage: the first task has ended and no other has begun, so that the batch is half there.

    A sink that shuffles, or uses the batch twice, writes in a later stage than the first. Tasks are counted through
    the batch, so a stage that begins before all tasks of those before it have ended has no such point.
    """
    points, done = [], 0
    for number, (stage, tasks) in enumerate(_stages(reports, batch).items(), start=1):
        if _alone(reports, batch, stage, done) and tasks > 1:
            points.append(_one_task(batch, done, "one task ended" + (f", stage {number}" if number > 1 else "")))
        done += tasks
    return points


def _stages(reports: Iterable[Mapping[str, Any]], batch: int) -> Counter[Any]:
    """How many tasks of the batch each stage began, in the order of the stages' first tasks."""
    return Counter(
        report.get("stage")
        for report in reports
        if (report["phase"], report.get("edge"), report.get("batch")) == ("task.run", "before", batch)
    )


def _alone(reports: Iterable[Mapping[str, Any]], batch: int, stage: Any, before: int) -> bool:
    """Whether the ``before`` tasks of earlier stages had all ended when this one began."""
    ended = 0
    for report in reports:
        if report["phase"] == "task.run" and report.get("batch") == batch:
            if report.get("stage") == stage:
                break
            ended += report.get("edge") == "after"
    return ended == before


def _one_task(batch: int, done: int, step: str) -> SweepPoint:
    where = {"batch": batch}
    hold = Point("task.run", "before", where, nth=done + 2)
    fault = Fault(Point("task.run", "after", where, nth=done + 1), (KILL,), holds=(hold,))
    return SweepPoint(step, Plan((fault,)))


def _lines(reports: Iterable[Mapping[str, Any]], batch: int) -> list[SweepPoint]:
    executed = Counter(
        (report["file"], report["line"])
        for report in reports
        if report["phase"] == "line" and report.get("batch") == batch
    )
    return [
        SweepPoint(f"line {file}:{line} ({_ordinal(nth, count)}), {action.name}", Plan((Fault(point, (action,)),)))
        for (file, line), count in sorted(executed.items())
        for nth in sorted({1, min(2, count), count})
        for point in [Point("line", None, {"file": file, "line": line, "batch": batch}, nth=nth)]
        for action in (KILL, FAIL)
    ]


def _ordinal(nth: int, count: int) -> str:
    if count == 1:
        return "once"
    return "last" if nth == count and nth > 2 else {1: "first", 2: "second"}.get(nth, str(nth))
