"""The steps of the commit protocol: in the batch of each role, by each action that their phase names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, product

from ....faults import PHASES, Action, Fault, Phase, Plan, Point, format_action
from ..points import ANY_BATCH, KILL, STEPS_ONLY, Gap, Profile, Question, SweepPoint, of_one_task, selector
from ..roles import MIDDLE
from ..steps import ONE_TASK_ENDED, ONE_TASK_MISSING, shown
from ..trace import Executed, Step, executed, phases_in, reports
from ._declaration import Strike


def steps(question: Question) -> Iterator[SweepPoint | Gap]:
    for phase in PHASES:
        if not question.can_have(phase.name):
            continue
        for edge, action in product(phase.edges, _actions(phase, question.profile)):
            if _knows_batch(phase):
                yield from _in_each_batch(question, phase, edge, action)
            elif phase.where == "broker" or (phase.name, edge) in phases_in(question.trace):
                plan = Plan((Fault(Point(phase.name, edge), (action,)),))
                yield SweepPoint(
                    Step(phase.name, edge), format_action(action), ANY_BATCH, None, plan,
                    alone=True, exclusive=phase.where == "broker",
                )  # fmt: skip


def _actions(phase: Phase, profile: Profile) -> Sequence[Action]:
    return tuple(action for action in phase.sweep if action == KILL) if profile in STEPS_ONLY else phase.sweep


def _knows_batch(phase: Phase) -> bool:
    return any(selector.name == "batch" for selector in phase.selectors)


def _in_each_batch(question: Question, phase: Phase, edge: str, action: Action) -> Iterator[SweepPoint | Gap]:
    """The step in every role; a stage that does not write to the sink in one role, the stages taking turns."""
    here, struck_by = Step(phase.name, edge), format_action(action)
    anywhere = False
    missing: list[Gap] = []
    for turn, (role, batch) in enumerate(_roles(question).items()):
        seen = executed(question.trace, batch)
        steps = _of_stage_in_turn([step for step in seen.steps if step.name == here.name], seen, turn, question.profile)
        anywhere = anywhere or bool(steps)
        if not steps:
            missing.append(Gap(here, struck_by, role, f"batch {batch} has no {here} in the reference trace"))
        for step in steps:
            plan = Plan((Fault(selector(step, batch), (action,)),))
            alone = role == MIDDLE and action == KILL
            yield SweepPoint(shown(step, seen), struck_by, role, batch, plan, alone=alone)
    if anywhere:
        yield from missing


def _roles(question: Question) -> Mapping[str, int]:
    if question.profile == "quick":
        return {role: batch for role, batch in question.roles.items() if role == MIDDLE}
    return question.roles


def _of_stage_in_turn(steps: Sequence[Step], seen: Executed, turn: int, profile: Profile) -> list[Step]:
    """One row for each step; the writing stage, and in turn one of the others (all of them in a full sweep)."""
    rows: dict[int | None, Step] = {}
    for step in steps:
        if step.stage not in rows or (step.row or 0) > (rows[step.stage].row or 0):
            rows[step.stage] = step
    others = [stage for stage in rows if stage is not None and stage != seen.writing]
    chosen = others if profile == "full" or not others else [others[turn % len(others)]]
    return [step for stage, step in rows.items() if stage is None or stage == seen.writing or stage in chosen]


def one_task_alone(question: Question) -> Iterator[SweepPoint]:
    """In each stage: the first task has ended and no other has begun, so that the batch is half there."""
    for turn, (role, batch) in enumerate(_roles(question).items()):
        seen = executed(question.trace, batch)
        several = [Step("task.run", "after", stage) for stage, tasks in seen.tasks.items() if tasks > 1]
        for step in _of_stage_in_turn(several, seen, turn, question.profile):
            end, begin = selector(step, batch, 1), selector(Step("task.run", "before", step.stage), batch, 2)
            plan = Plan((Fault(end, (KILL,), holds=(begin,)),))
            here = shown(Step(ONE_TASK_ENDED, stage=step.stage), seen)
            yield SweepPoint(here, format_action(KILL), role, batch, plan, alone=role == MIDDLE)


def one_task_missing(question: Question) -> Iterator[SweepPoint]:
    """In the middle batch, in the stage that writes: all tasks but the first partition's have ended, the last one's
    among them, which may note that the batch is done. Where tasks come one by one the first cannot be kept back."""
    batch = question.middle
    seen = executed(question.trace, batch)
    tasks = seen.tasks.get(seen.writing, 0) if seen.writing is not None else 0
    if tasks > 1 and question.profile not in STEPS_ONLY and _side_by_side(question, batch, seen.writing):
        begin = of_one_task(selector(Step("task.run", "before", seen.writing), batch, 1), seen)
        end = selector(Step("task.run", "after", seen.writing), batch, tasks - 1)
        plan = Plan((Fault(end, (KILL,), holds=(begin,)),))
        here = shown(Step(ONE_TASK_MISSING, stage=seen.writing), seen)
        yield SweepPoint(here, format_action(KILL), MIDDLE, batch, plan, alone=True)


def _side_by_side(question: Question, batch: int, stage: int | None) -> bool:
    """Whether two tasks of the stage were seen to run at the same time."""
    edges = [
        event.get("edge")
        for event in reports(question.trace, batch)
        if (event["phase"], event.get("stage")) == ("task.run", stage)
    ]
    running = [*accumulate(1 if edge == "before" else -1 for edge in edges)]
    return max(running, default=0) > 1


STRIKE = Strike(10, (steps, one_task_alone, one_task_missing), steps_only=True)
