"""What a certificate covers, and what it leaves out: a matrix of step, action and role of the batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, Field

from ...documents import CLOSED
from .points import ANY_BATCH, Gap, Space
from .results import PointResult
from .trace import Line, Step

Status = Literal[
    "pass", "fail", "inconclusive", "not reached", "not tried", "left to chance", "not possible here", "not asked"
]
WORST_FIRST: tuple[Status, ...] = (
    "fail", "not reached", "not tried", "inconclusive", "not asked", "pass", "left to chance", "not possible here"
)  # fmt: skip


BEYOND = (
    "a task that goes on after its driver, or beside another attempt of it, but for one task of the second batch, at "
    "two of its requests or changes of files",
    "a request that its client gives up after more than fifteen seconds (of Kafka: a minute), and that is carried out",
    "code that runs between two batches, or after the last one",
    "a write that the sink does not wait for, where neither requests nor files are seen",
    "a driver that stands still for more than thirty seconds while the sink lets no other one in",
    "a service that is away for more than forty seconds",
    "a limit of more than ten crashes or twenty tries, one that the sink's code does not name, and waits of more than "
    "a minute",
    "a loss of power of the targets' own machines, and a server that comes back without what it had",
    "a recovery that begins more than 75 seconds after the crash, on another day, or with another configuration",
    "a write to a file that is carried out in part, such as by a disk that is full half-way, and a loss of power that "
    "takes the name of a new directory, or a part of what was not synced, but for all that was written and none of the "
    "names",
    "before the query starts: all but a driver's death, errors at the sink's own lines, and a service of your own that "
    "refuses what it is asked",
    "a driver that was taken for dead and comes back before other lines, requests and changes of files than those that "
    "are struck (six lines at most, evenly)",
    "what is written for a while only, such as by a time to live of more than 75 seconds, and the order of rows",
    "a checkpoint that is lost, older than the target, or copied (--points plans)",
    "an answer that refuses a part of what was asked for, such as some items of a bulk request",
    "what is done beyond the first twelve batches only; of what is done in some of these, or in a batch of 30,000 "
    "rows, and in none of the workload's, all but a driver's death and errors in the sink's own lines",
    "between two pieces of a batch where a piece has more rows than the workload's batches: all but a driver's death "
    "behind the first one",
    "after a crash in mid-batch: a request that is lost, a change of a file that fails, an error that nothing catches",
    "what an error that a sink has caught leaves behind for its later batches, but for what these then lack or repeat, "
    "and for the driver's death behind the batch, and at a few places of the next one",
    "the death of a driver that was taken for dead, but for that behind its first change, and behind those that "
    "empty or remove a file (three at most)",
    "a second query that writes by the same sink, but for what its transactional ids do to those of the first",
    "a driver that comes back on another machine, but for its temporary directory: disk and host name are the same",
    "in a job of your own, a replay in another number of partitions, a query that starts again in its process, and an "
    "executor that is given up",
    "other interleavings of tasks and threads than those that came about",
    "what a call of a library has done half of, but for its requests and its changes of files",
    "more than twelve batches, batches without any rows or of more than 30,000, and times finer than a millisecond",
)
"""What no sweep strikes or tries, in any profile."""


class Cell(BaseModel):
    """A cell of the matrix: the worst of its points."""

    model_config = CLOSED

    step: str
    file: str | None = Field(default=None, description="of a line: the file of the sink's code")
    action: str
    role: str = Field(description="of the batch; 'any' for a step that knows no batch, or for all of them")
    status: Status
    points: int = Field(ge=0)
    reason: str | None = None

    @property
    def missing(self) -> bool:
        """Whether a certificate cannot pass without it."""
        return self.status in ("not reached", "not tried") and not self.points


class Scope(BaseModel):
    """The matrix, in one sentence and cell by cell.

    ``unswept`` names the modules of the sink's directory that it imports, and the functions of these and of its own
    file, and their branches, of which no line was executed on the driver in any start or batch; ``elsewhere`` the
    packages of other places that these import, none of whose lines is struck.
    """

    model_config = CLOSED

    summary: str
    roles: dict[str, int]
    cells: list[Cell]
    unswept: list[str] = []
    elsewhere: list[str] = []
    beyond: list[str] = Field(default=list(BEYOND), description="what no sweep strikes or tries, in any profile")
    whole: bool = Field(
        default=True, description="whether the points include what only recoveries ran, which other points' trials show"
    )

    @property
    def columns(self) -> list[str]:
        """The roles of the workload's batches, those of a longer run, and last that of points that know no batch."""
        others = (cell.role for cell in self.cells if cell.role != ANY_BATCH)
        return [*dict.fromkeys([*self.roles, *others]), ANY_BATCH]


def scope_of(
    space: Space,
    asked: Space,
    results: Mapping[str, PointResult],
    roles: Mapping[str, int],
    unswept: Sequence[str] = (),
    elsewhere: Sequence[str] = (),
    whole: bool = True,
) -> Scope:
    """``space`` is all that the profile has, ``asked`` what --points chose of it, ``results`` by the plan's text."""
    chosen = {point.text for point in asked.points}
    found: dict[tuple[Step | Line, str, str], list[Status]] = {}
    for point in space.points:
        status = _status(results.get(point.text)) if point.text in chosen else "not asked"
        found.setdefault((point.at, point.action, point.role), []).append(status)
    cells = [
        Cell(
            step=str(at), file=at.file if isinstance(at, Line) else None, action=action, role=role,
            status=min(all_of, key=WORST_FIRST.index), points=len(all_of),
        )
        for (at, action, role), all_of in found.items()
    ]  # fmt: skip
    cells += [_gap(gap, "not reached" if gap in asked.unreached else "not asked") for gap in space.unreached]
    cells += [_gap(gap, "not tried" if gap in asked.untried else "not asked") for gap in space.untried]
    cells += [_gap(gap, "left to chance") for gap in space.by_chance]
    cells += [_gap(gap, "not possible here") for gap in space.impossible]
    return Scope(
        summary=_summary(asked, results, cells, left_out=sum(point.text not in chosen for point in space.points)),
        roles=dict(roles),
        cells=cells,
        unswept=list(unswept),
        elsewhere=list(elsewhere),
        whole=whole,
    )


def _status(result: PointResult | None) -> Status:
    if result is None:
        return "not asked"
    if result.verdict == "inconclusive" and not result.reached:
        return "not reached"
    return result.verdict


def _gap(gap: Gap, status: Status) -> Cell:
    return Cell(step=gap.step, action=gap.action, role=gap.role, status=status, points=0, reason=gap.reason)


def _summary(asked: Space, results: Mapping[str, PointResult], cells: Sequence[Cell], left_out: int) -> str:
    """``214 points over 5 batches; not possible here: kill(executor) needs --master standalone ...``."""
    run = sum(point.text in results for point in asked.points)
    batches = len({point.batch for point in asked.points if point.batch is not None})
    parts = [f"{_counted(run, len(asked.points))} over {batches} batch{'' if batches == 1 else 'es'}"]
    parts += _named("not reached", (cell for cell in cells if cell.status == "not reached"), by="step")
    parts += _named("not tried", (cell for cell in cells if cell.status == "not tried"), by="action")
    if by_chance := [cell.step for cell in cells if cell.status == "left to chance"]:
        points = _counted(len(by_chance), len(by_chance))
        parts.append(f"left to chance: {points} at {', '.join(dict.fromkeys(by_chance))}")
    parts += _named("not possible here", (gap for gap in cells if gap.status == "not possible here"), by="action")
    if left_out:
        parts.append(f"not asked: {_counted(left_out, left_out)}")
    return "; ".join(parts)


def _counted(run: int, asked: int) -> str:
    word = "point" if asked == 1 else "points"
    return f"{run} {word}" if run == asked else f"{run} of {asked} {word}"


def _named(title: str, cells: Iterable[Cell], by: Literal["step", "action"]) -> list[str]:
    """Each step or action once, with the first reason that there is, unless that names it itself."""
    reasons: dict[str, str] = {}
    for cell in cells:
        reasons.setdefault(cell.step if by == "step" else cell.action, cell.reason or "")
    named = [
        reason if reason.startswith(name) else f"{name} ({reason})" if reason else name
        for name, reason in reasons.items()
    ]
    return [f"{title}: {', '.join(named)}"] if named else []
