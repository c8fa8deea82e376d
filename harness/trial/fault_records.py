"""A plan's faults as the judge needs them: with what each action must leave behind."""

from __future__ import annotations

from dataclasses import replace

from ...assertions import ActionRecord, FaultRecord, requirements
from ...faults import (
    Execution,
    Fault,
    Plan,
    action_named,
    ends_by_death,
    format_action,
    format_fault,
    format_place,
    left_behind,
)
from ...plans import Action
from ...requirements import Requirement


def fault_records(plan: Plan, execution: Execution = "micro-batch") -> list[FaultRecord]:
    """The faults of ``plan`` in their order. Raises ValueError if one requires what nobody can check."""
    return [fault_record(fault, execution) for fault in plan.faults]


def fault_record(fault: Fault, execution: Execution = "micro-batch") -> FaultRecord:
    """One fault of a query that Spark runs so. Raises ValueError if it requires what nobody can check, or nothing."""
    actions = tuple(
        _action_record(action, _required_of(number, fault), execution) for number, action in enumerate(fault.actions)
    )
    for requirement in (one for record in actions for one in record.requirements):
        requirements.check_named(requirement.kind)
    return FaultRecord(format_fault(fault), format_place(fault), fault, actions)


def _required_of(number: int, fault: Fault) -> tuple[Requirement, ...]:
    """What an action must leave behind: where an earlier one of its fault has changed what the successor of its target
    reads, a death leaves what that one requires; and where its target is killed before it goes on, both leave what that
    requires."""
    action, earlier = fault.actions[number], fault.actions[:number]
    spec = action_named(action.name)
    for stopping in (number, number - 1):
        if stopping >= 0 and ends_by_death(fault, stopping):
            stopped = fault.actions[stopping]
            return action_named(stopped.name).required_of(stopped.target, killed=True)
    changes = [one for one in earlier if action_named(one.name).read_by_the_next == action.target]
    if spec.amends or action.target is None or action.until or not changes:
        return spec.required_of(action.target)
    return action_named(changes[-1].name).required_of(changes[-1].target)


def _action_record(action: Action, required: tuple[Requirement, ...], execution: Execution) -> ActionRecord:
    text = format_action(replace(action, until=None))
    return ActionRecord(text, action, left_behind(required, execution), action_named(action.name).runs_on)
