"""A batch of many rows: sinks that commit a batch in pieces do so only where it has more rows than a piece."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...faults import Fault, Plan, Point, Value, format_action
from .effects import Effect, steady
from .files import FILES
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
    settings = {"batches": "1", "rows": str(ROWS)}
    struck = set()
    for effect in (*steady(question, REQUESTS, BATCH), *steady(question, FILES, BATCH)):
        where = _kind(effect)
        at = Point(effect.phase, "after", {**where, "batch": BATCH}, 1)
        plan = Plan((Fault(at, (KILL,)),), settings)
        here = Step(effect.phase, "after")
        detail = f"{' '.join(map(str, where.values()))}, {ROWS} rows"
        point = SweepPoint(here, format_action(KILL), LARGE, BATCH, plan, detail, alone=True)
        if effect.answered and point.text not in struck:
            struck.add(point.text)
            yield point


def _kind(effect: Effect) -> Mapping[str, Value]:
    """By what it is chosen where others of its kind are, too."""
    if effect.phase == REQUESTS.phase:
        return {name: effect.where[name] for name in ("service", "kind")}
    directory = str(effect.where["path"]).partition("/")[0]
    return {"op": effect.where["op"], "path": f"{directory}/*"}
