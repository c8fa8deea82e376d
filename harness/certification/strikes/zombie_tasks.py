"""A task that is taken for lost, and comes back: its machine is cut off from the network, the driver gives the executor
up and has the task run elsewhere, and when the batch is done, the first one goes on."""

from __future__ import annotations

from collections.abc import Iterator

from ....faults import Action, Fault, Plan, Point, format_action
from ..points import Question, SweepPoint, end_of, has_next, selector
from ..roles import MIDDLE, SECOND
from ..steps import shown
from ..trace import Executed, Step, executed
from ._declaration import Strike

CUT_OFF = 30.0
"""Seconds for which the machine has no network: the driver gives its executor up after 10 s of these."""
LONGEST = 28.0
"""Seconds for which the task stands still: it goes on before the network is back, and cannot be told to end."""
LATER = 40.0
"""Seconds for which the next batch waits, so that what the task still does is done while the job is under way."""

SETTINGS = {
    "spark.executor.heartbeatInterval": "1s",
    "spark.network.timeoutInterval": "2s",
    "spark.storage.blockManagerHeartbeatTimeoutMs": "10s",
}

ROW = Step("task.row", "before")
STEPS = (ROW.name, "task.input:before", "task.commit:before")
MIDST = 5
"""The row at which a task is, where rows are not traced."""
DETAIL = "taken for lost"


def zombie_tasks(question: Question) -> Iterator[SweepPoint]:
    """Of the stage that writes, in the midst of its rows, and before it commits. That is in the second batch, whose
    rows a task has from Kafka by one poll: what it still had to ask for would not come."""
    role = SECOND if SECOND in question.roles else MIDDLE
    batch = question.roles[role]
    seen = executed(question.trace, batch)
    if not has_next(question, batch) or seen.writing is None:
        return
    first: dict[str, Step] = {}
    for step in seen.steps:
        if step.name in STEPS and step.stage == seen.writing:
            first.setdefault(step.name, step)
    if ROW.name not in first and question.can_have(ROW.phase):
        yield _point(ROW._replace(stage=seen.writing, row=MIDST), role, batch, seen)
    for step in first.values():
        yield _point(step, role, batch, seen)


def _point(step: Step, role: str, batch: int, seen: Executed) -> SweepPoint:
    cut = Action("partition", "executor", {"for": CUT_OFF})
    stands = Action("delay", None, {"longest": LONGEST}, until=end_of(batch))
    waits = Fault(Point("sink.write", "before", {"batch": batch + 1}), (Action("delay", None, {"for": LATER}),))
    plan = Plan((Fault(selector(step, batch, 1), (cut, stands)), waits), SETTINGS)
    by = format_action(Action("partition", "executor"))
    return SweepPoint(
        shown(step, seen), by, role, batch, plan, DETAIL, alone=True, exclusive=True, seen_once=step not in seen.steps
    )


STRIKE = Strike(71, (zombie_tasks,))
