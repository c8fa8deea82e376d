"""Rows that one broker alone has when they are acknowledged (acks=1): it dies before another has copied them.

Nothing else shows that, and the sink itself asks for it: where there is one broker only, it is not tried, and the
certificate cannot pass.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....faults import Action, Fault, Plan, Point, format_action
from ....faults.capabilities import FOLLOWERS
from ..names import pattern_of
from ..points import Question, SweepPoint
from ..trace import Event, Step, reports
from ._declaration import Strike

STOPPED = 8.0
"""Seconds for which the others stand still at most: so long does a client wait that wants a copy."""

BY_THE_LEADER = 1
"""The acks of such a request; 0 waits for nobody, and is shown by requests that are lost."""

DETAIL = "acknowledged by one broker alone (acks=1)"


def single_copies(question: Question) -> Iterator[SweepPoint]:
    """The first records for each topic, in the first role that has some. The followers stand still from before they go
    out until their leader is dead."""
    found: dict[str, SweepPoint] = {}
    for role, batch in question.roles.items():
        for event in reports(question.trace, batch):
            if _is_acknowledged_by_one(event):
                found.setdefault(str(event["topic"]), _point(event, role, batch))
    yield from found.values()


def _is_acknowledged_by_one(event: Event) -> bool:
    here = (event["phase"], event.get("edge"), event.get("acks"))
    return here == ("request", "before", BY_THE_LEADER) and "topic" in event


def _point(event: Event, role: str, batch: int) -> SweepPoint:
    asked = {name: event[name] for name in ("service", "kind", "kafka_partition")}
    where = {**asked, "topic": pattern_of(event["topic"]), "batch": batch}
    noted = Point("batch.commit", "before", {"batch": batch})
    pause = Action("pause", "broker", {"which": FOLLOWERS, "longest": STOPPED}, until=noted)
    kill = Action("kill", "broker", {"which": "leader"})
    before, after = (Point("request", edge, where, 1) for edge in ("before", "after"))
    plan = Plan((Fault(before, (pause,)), Fault(after, (kill, Action("resume", "broker")))))
    here, shown = Step("request", "after"), format_action(kill)
    return SweepPoint(here, shown, role, batch, plan, DETAIL, alone=True, exclusive=True, required=True)


STRIKE = Strike(80, (single_copies,))
