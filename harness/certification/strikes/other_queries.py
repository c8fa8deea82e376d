"""A second query writes by the same sink while one is about to commit: names that a whole service knows, such as
transactional ids, must not be the same for both (FLINK-9295)."""

from __future__ import annotations

from collections.abc import Iterator

from ....faults import Action, Fault, Plan, format_action
from ..effects import steady
from ..points import Question, SweepPoint
from ..requests import REQUESTS
from ..trace import Step
from ._declaration import Strike

DECIDED = "EndTxn"
"""The request behind which a transaction is decided: until then another producer with its id aborts it."""


def other_queries(question: Question) -> Iterator[SweepPoint]:
    """In the first role that commits a transaction by its id, before the first such request."""
    start = Action("start", "query")
    for role, batch in question.roles.items():
        for one in steady(question, REQUESTS, batch):
            if one.where["kind"] == DECIDED:
                here, plan = Step(one.phase, "before"), Plan((Fault(one.point("before", batch), (start,)),))
                yield SweepPoint(here, format_action(start), role, batch, plan, one.shown, exclusive=True)
                return


STRIKE = Strike(95, (other_queries,))
"""Behind what one query comes to by itself."""
