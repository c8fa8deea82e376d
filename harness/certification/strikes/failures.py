"""What follows an error that Spark sees: an attempt's abort, the batch's abort, and a task that fails for good.

A run without errors has none of these steps, so that no trace shows them: they are known from the protocol.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....faults import Fault, Plan, format_action
from ..points import FAIL, KILL, Question, SweepPoint, in_a_row, of_one_task, selector
from ..roles import MIDDLE
from ..steps import shown
from ..trace import Executed, Step, executed
from ._declaration import Strike

ATTEMPTS = 4
"""spark.task.maxFailures, unless a user has set it: a task that has failed so often fails its job."""


def failures(question: Question) -> Iterator[SweepPoint]:
    """In the middle batch: the driver dies before and after each abort; a task fails with nothing done until its last
    attempt does it all; and one fails each time, with nothing done or with all, until its job is given up."""
    batch = question.middle
    seen = executed(question.trace, batch)
    stage = seen.writing
    if question.can_have("task.abort"):
        yield from _in_abort("task.abort", _first(seen, "task.commit", "task.row", stage=stage), batch, seen)
        yield from _in_abort("sink.abort", _first(seen, "sink.commit", "sink.manifest"), batch, seen)
    for step, times in (
        (Step("task.run", "before", stage), ATTEMPTS - 1),
        (Step("task.run", "before", stage), ATTEMPTS),
        (Step("task.run", "after", stage), ATTEMPTS),
    ):
        if step in seen.steps:
            plan = in_a_row(of_one_task(selector(step, batch), seen), FAIL, times)
            detail = f"{times} times in a row"
            yield SweepPoint(shown(step, seen), format_action(FAIL), MIDDLE, batch, plan, detail)


def _first(seen: Executed, *phases: str, stage: int | None = None) -> Step | None:
    """Where the first of these phases that the batch has begins."""
    begins = (step for phase in phases for step in seen.steps if step.name == f"{phase}:before" and step.stage == stage)
    return next(begins, None)


def _in_abort(abort: str, failing: Step | None, batch: int, seen: Executed) -> Iterator[SweepPoint]:
    """The driver's death at both edges of the abort to which an error leads."""
    if failing is None:
        return
    first = Fault(of_one_task(selector(failing, batch), seen), (FAIL,))
    detail = f"after a fault at {shown(failing, seen)}"
    for edge in ("before", "after"):
        here = Step(abort, edge, failing.stage)
        plan = Plan((first, Fault(of_one_task(selector(here, batch), seen), (KILL,))))
        yield SweepPoint(shown(here, seen), format_action(KILL), MIDDLE, batch, plan, detail)


STRIKE = Strike(40, (failures,))
