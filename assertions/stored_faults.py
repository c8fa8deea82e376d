"""Faults of a plan in ``evidence.json``, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ..plans import Action, Fault, Moment, Point
from ..requirements import Requirement
from .model import ActionRecord, FaultRecord


def fault_as_json(record: FaultRecord) -> dict[str, Any]:
    """Each field under its own name."""
    return asdict(record)


def fault_from_json(found: Mapping[str, Any]) -> FaultRecord:
    """The record that :func:`fault_as_json` was given. Raises KeyError, TypeError or ValueError if it is damaged."""
    fault = found["fault"]
    return FaultRecord(
        text=found["text"],
        place=found["place"],
        fault=Fault(
            at=Moment(**fault["at"]) if "seconds" in fault["at"] else Point(**fault["at"]),
            actions=tuple(map(_action, fault["actions"])),
            holds=tuple(Point(**hold) for hold in fault["holds"]),
        ),
        actions=tuple(map(_action_record, found["actions"])),
    )


def _action(found: Mapping[str, Any]) -> Action:
    until = Point(**found["until"]) if found["until"] else None
    return Action(found["name"], found["target"], found["arguments"], until)


def _action_record(found: Mapping[str, Any]) -> ActionRecord:
    requirements = tuple(map(_requirement, found["requirements"]))
    return ActionRecord(found["text"], _action(found["action"]), requirements, bool(found["runs_on"]))


def _requirement(found: Mapping[str, Any]) -> Requirement:
    steps = tuple((phase, edge) for phase, edge in found["steps"])
    return Requirement(found["kind"], steps, bool(found["in_batch"]), tuple(found["targets"]))
