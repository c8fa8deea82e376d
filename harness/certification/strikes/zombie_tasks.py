"""A task that is taken for lost, and comes back: its machine is cut off from the network, the driver gives the executor
up and has the task run elsewhere, and when the batch is done, the first attempt goes on. It can still write to files.
Nothing is tried of tasks that write to services: those are cut off as well."""

from __future__ import annotations

from collections.abc import Iterator

from ....faults import Action, Fault, Plan, Point, format_action
from ..files import FILES
from ..kinds import in_tasks
from ..points import Gap, Question, SweepPoint, end_of, selector
from ..requests import REQUESTS
from ..roles import MIDDLE
from ..steps import shown
from ..trace import Executed, Step, executed
from ._declaration import Strike
from ._zombies import given_up_after, small_batch

CUT_OFF = 30.0
"""Seconds for which the machine has no network: the driver gives its executor up after 10 s of these."""
LONGEST = 28.0
"""Seconds for which the task stands still at most: it goes on before the network is back, and cannot be told to end."""
LATER = 40.0
"""Seconds for which the next batch waits, so that what the task still does is done while the job is under way."""

SETTINGS = given_up_after(10)

ROW = Step("task.row", "before")
STEPS = (ROW.name, "task.input:before", "task.commit:before")
FIFTH = ROW._replace(row=5)
DETAIL = "taken for lost"
BY = format_action(Action("partition", "executor"))


def zombie_tasks(question: Question) -> Iterator[SweepPoint | Gap]:
    """The first such task, in the second batch or the first: at its fifth row, at its first input, and before it
    commits. Where rows are not traced, it is a task of any stage."""
    if not _write_to_files_alone(question, question.middle):
        return
    small = small_batch(question)
    if small is None:
        yield Gap(ROW, BY, MIDDLE, "neither of the first two batches is swept and followed by another one")
        return
    role, batch = small
    seen = executed(question.trace, batch)
    found = {step.name: step for step in sorted(seen.steps, key=lambda step: step.row or 0) if _chosen(step, seen)}
    if ROW.name not in found and question.can_have(ROW.phase):
        yield _point(FIFTH, role, batch, seen)
    for step in found.values():
        yield _point(step, role, batch, seen)


def _write_to_files_alone(question: Question, batch: int) -> bool:
    """What tasks of the stage that writes were seen to do."""
    stage = executed(question.trace, batch).writing
    requests, files = (in_tasks(question, batch, stage, [phase]) for phase in (REQUESTS.phase, FILES.phase))
    return any(files) and not any(requests)


def _chosen(step: Step, seen: Executed) -> bool:
    return step.name in STEPS and step.stage == seen.writing


def _point(step: Step, role: str, batch: int, seen: Executed) -> SweepPoint:
    cut = Action("partition", "executor", {"for": CUT_OFF})
    stands = Action("delay", None, {"longest": LONGEST}, until=end_of(batch))
    waits = Fault(Point("sink.write", "before", {"batch": batch + 1}), (Action("delay", None, {"for": LATER}),))
    plan = Plan((Fault(selector(step, batch, 1), (cut, stands)), waits), SETTINGS)
    here = shown(step, seen)
    return SweepPoint(here, BY, role, batch, plan, DETAIL, alone=True, exclusive=True, seen_once=True, way=DETAIL)


STRIKE = Strike(71, (zombie_tasks,))
