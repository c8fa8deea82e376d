"""Faults: where a process is stopped (phases), what is done to it there (actions), and the language of plans.

>>> plan = parse("sink.commit:after[batch=2] -> kill(driver)")
>>> resolve(plan, UNKNOWN, "local[2]").driver_points >= {("sink.commit", "after")}
True
>>> parse("sink.comit:after -> kill(driver)")
Traceback (most recent call last):
    ...
onceproof.faults.errors.PlanError: plan, line 1, column 1: no phase is called sink.comit: did you mean sink.commit? ...
"""

from .catalogue import (
    ACTIONS,
    ALWAYS_REPORTED,
    PHASES,
    UNKNOWN,
    ActionSpec,
    Parameter,
    Phase,
    SinkShape,
    action_named,
    argument,
    phase_named,
    phases_of,
    render_actions,
    render_catalogue,
    shape_of,
)
from .errors import PlanError
from .injector import Injector
from .language import LocatedPlan, format_action, format_fault, format_plan, format_point, parse, parse_located
from .model import Action, Edge, Fault, Moment, Plan, Point, Value
from .resolve import ResolvedPlan, resolve

__all__ = [
    "ACTIONS",
    "ALWAYS_REPORTED",
    "PHASES",
    "UNKNOWN",
    "Action",
    "ActionSpec",
    "Edge",
    "Fault",
    "Injector",
    "LocatedPlan",
    "Moment",
    "Parameter",
    "Phase",
    "Plan",
    "PlanError",
    "Point",
    "ResolvedPlan",
    "SinkShape",
    "Value",
    "action_named",
    "argument",
    "format_action",
    "format_fault",
    "format_plan",
    "format_point",
    "parse",
    "parse_located",
    "phase_named",
    "phases_of",
    "render_actions",
    "render_catalogue",
    "resolve",
    "shape_of",
]
