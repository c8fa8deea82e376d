"""More than ten tasks: many of them have not begun when one of the first fails for good, and their numbers have two
digits, so that who finds what a task has left by how its name begins takes that of others, too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ....faults import Fault, Plan, Point, format_action
from ..kinds import in_tasks
from ..points import ALL_DONE, KILL, Question, SweepPoint, selector, under
from ..roles import MIDDLE
from ..steps import shown
from ..trace import Step, executed, task_lines
from ._declaration import Strike

TASKS = 12
SETTINGS = {"partitions": str(TASKS), "spark.sql.shuffle.partitions": str(TASKS)}
DETAIL = f"{TASKS} tasks"

STRUCK = (0, 10)
"""The first task, and the first one whose number has two digits."""


def more_tasks(question: Question) -> Iterator[SweepPoint]:
    """The driver dies in the middle batch, where one of these tasks has ended and others may not have, and behind the
    batch; of sinks of which tasks do a part. A sink that makes tasks of its own number may have no such one: the point
    behind the batch stands for it."""
    batch = question.middle
    if question.batches is None or not _tasks_write(question, batch):
        return
    seen = executed(question.trace, batch)
    ended = Step("task.run", "after", seen.writing)
    if ended in seen.steps:
        at = selector(ended, batch, 1)
        for task in STRUCK:
            yield _point(shown(ended, seen), replace(at, where={**at.where, "partition": task}), batch)
    if ALL_DONE in seen.steps:
        yield _point(ALL_DONE, selector(ALL_DONE, batch), batch)


def _tasks_write(question: Question, batch: int) -> bool:
    """By code of the sink's own, by a writer that Spark calls, or by what leaves the job while they run."""
    seen = executed(question.trace, batch)
    committing = any(step.phase == "task.commit" for step in seen.steps)
    return committing or bool(task_lines(question.trace, batch)) or any(in_tasks(question, batch, seen.writing))


def _point(here: Step, at: Point, batch: int) -> SweepPoint:
    plan = Plan((Fault(at, (KILL,)),))
    point = SweepPoint(here, format_action(KILL), MIDDLE, batch, plan, DETAIL, alone=True, way=DETAIL)
    return under(SETTINGS, point)


STRIKE = Strike(97, (more_tasks,))
