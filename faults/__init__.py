"""Faults: where a process is stopped (phases), what is done to it there (actions), and the language of plans.

>>> plan = parse("sink.commit:after[batch=2] -> kill(driver)")
>>> resolve(plan, UNKNOWN, "local[2]").driver_points >= {("sink.commit", "after")}
True
>>> parse("sink.comit:after -> kill(driver)")
Traceback (most recent call last):
    ...
onceproof.faults.errors.PlanError: plan, line 1, column 1: no phase is called sink.comit: did you mean sink.commit? ...
"""

from ..plans import Action, Edge, Fault, Moment, Plan, Point, Value
from .catalogue import (
    ACTIONS,
    PHASES,
    UNKNOWN,
    ActionSpec,
    Parameter,
    Phase,
    SinkShape,
    action_named,
    argument,
    ends_by_death,
    phase_named,
    phases_of,
    render_actions,
    render_catalogue,
    required_steps,
    shape_of,
    takes_service_away,
)
from .declarations import ALWAYS_REPORTED, EXECUTIONS, SERVERS, Execution
from .errors import PlanError
from .handlers import errors_at
from .injection import Injector
from .language import (
    LocatedPlan,
    format_action,
    format_fault,
    format_plan,
    format_point,
    is_empty,
    parse,
    parse_located,
)
from .library import KnownFailure, NoSuchFailure, known_failure, known_failures
from .printing import format_place
from .rendezvous import Rendezvous
from .replays import left_behind
from .resolution import ResolvedPlan, resolve, sinks_for
from .shape import hands_over_updates, keeps_state, modules_used, refused_names
from .statements import calls_at

__all__ = [
    "ACTIONS",
    "ALWAYS_REPORTED",
    "EXECUTIONS",
    "PHASES",
    "SERVERS",
    "UNKNOWN",
    "Action",
    "ActionSpec",
    "Edge",
    "Execution",
    "Fault",
    "Injector",
    "KnownFailure",
    "LocatedPlan",
    "Moment",
    "NoSuchFailure",
    "Parameter",
    "Phase",
    "Plan",
    "PlanError",
    "Point",
    "Rendezvous",
    "ResolvedPlan",
    "SinkShape",
    "Value",
    "action_named",
    "argument",
    "calls_at",
    "ends_by_death",
    "errors_at",
    "format_action",
    "format_fault",
    "format_place",
    "format_plan",
    "format_point",
    "hands_over_updates",
    "is_empty",
    "keeps_state",
    "known_failure",
    "known_failures",
    "left_behind",
    "modules_used",
    "parse",
    "parse_located",
    "phase_named",
    "phases_of",
    "refused_names",
    "render_actions",
    "render_catalogue",
    "required_steps",
    "resolve",
    "shape_of",
    "sinks_for",
    "takes_service_away",
]
