"""A batch of many rows: sinks that commit a batch in pieces do so only where it has more rows than a piece."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...faults import Fault, Plan, Point, Value, format_action
from .effects import steady
from .files import FILES, alike
from .points import KILL, Question, SweepPoint
from .requests import REQUESTS
from .trace import Step

ROWS = 16_000
"""Of the only batch: more than ten thousand, and more than five thousand in each of three tasks."""

LARGE = "large"

BATCH = 0


def larger(question: Question) -> Iterator[SweepPoint]:
    """The driver's death behind the first request of each kind, and behind the first change of each kind in each
    directory: the first piece is done then, and others follow."""
    if question.batches is None or BATCH not in question.roles.values():
        return
    asked = [(one, one.where) for one in steady(question, REQUESTS, BATCH) if one.answered]
    changed = [(one, alike(one)) for one in steady(question, FILES, BATCH)]
    for phase, where in dict.fromkeys((one.phase, tuple(where.items())) for one, where in [*asked, *changed]):
        yield _point(phase, dict(where))


def _point(phase: str, where: Mapping[str, Value]) -> SweepPoint:
    at = Point(phase, "after", {**where, "batch": BATCH}, 1)
    plan = Plan((Fault(at, (KILL,)),), {"batches": "1", "rows": str(ROWS)})
    detail = f"{' '.join(map(str, where.values()))}, {ROWS} rows"
    return SweepPoint(Step(phase, "after"), format_action(KILL), LARGE, BATCH, plan, detail, alone=True)
