"""A plan's faults as the judge needs them: with what each action must leave behind."""

from __future__ import annotations

from dataclasses import replace

from ...assertions import ActionRecord, FaultRecord, requirements
from ...faults import Execution, Fault, Plan, action_named, format_action, format_fault, format_place, left_behind
from ...plans import Action


def fault_records(plan: Plan, execution: Execution = "micro-batch") -> list[FaultRecord]:
    """The faults of ``plan`` in their order. Raises ValueError if one requires what nobody can check."""
    return [fault_record(fault, execution) for fault in plan.faults]


def fault_record(fault: Fault, execution: Execution = "micro-batch") -> FaultRecord:
    """One fault of a query that Spark runs so. Raises ValueError if it requires what nobody can check, or nothing."""
    actions = tuple(_action_record(action, execution) for action in fault.actions)
    for requirement in (one for record in actions for one in record.requirements):
        requirements.check_named(requirement.kind)
    return FaultRecord(format_fault(fault), format_place(fault), fault, actions)


def _action_record(action: Action, execution: Execution) -> ActionRecord:
    spec = action_named(action.name)
    text = format_action(replace(action, until=None))
    return ActionRecord(text, action, left_behind(spec.required_of(action.target), execution), spec.runs_on)
