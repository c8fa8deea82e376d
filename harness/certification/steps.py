"""Steps of the commit protocol as a certificate shows them, and those that a trace lacks."""

from __future__ import annotations

from collections.abc import Iterator

from ...faults import format_action
from .points import ANY_BATCH, KILL, Gap, Question
from .trace import Executed, Step, phases_in, runs_of

ONE_TASK_ENDED = "one task ended"
ONE_TASK_MISSING = "all tasks but one ended"

IN_THE_REPLAY = Step("in the replay")
"""Where points are missing if a batch's replay was not traced: any that --points names, since only then one is."""


def shown(step: Step, seen: Executed) -> Step:
    """The step as the matrix has it: with its stage where a batch has several."""
    return step._replace(stage=step.stage if len(seen.tasks) > 1 else None, row=None)


def unreached(question: Question) -> Iterator[Gap]:
    """Steps that the trace lacks, and batches whose replay could not be traced."""
    missing = question.required - phases_in(question.trace)
    for step in sorted(Step(phase, edge or "") for phase, edge in missing):
        yield Gap(step, format_action(KILL), ANY_BATCH, "the reference trace never reached it")
    for role, batch in question.roles.items():
        if question.replay and len(runs_of(question.replay, batch)) < 2:
            yield Gap(IN_THE_REPLAY, format_action(KILL), role, f"batch {batch} was not replayed in the trace")
