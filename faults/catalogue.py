"""The catalogue: which phases and actions there are, and which phases a sink has.

>>> {"kill", "pause", "restart"} <= {action.name for action in ACTIONS}
True
>>> PHASES[0].name, PHASES[0].edges
('query.start', ('before',))
"""

from __future__ import annotations

from typing import Any

from ..additions import declared_in
from ..plans import Action, Edge, Fault, Plan, Value
from ..requirements import required_at
from . import actions, phases
from .declarations import ENVIRONMENTS, NODE, PROCESS_KINDS, SINKS, ActionSpec, Parameter, Phase, Sinks, check_spec
from .replays import PROTOCOL
from .shape import UNKNOWN, SinkShape, lines_of, shape_of

__all__ = [
    "ACTIONS",
    "PHASES",
    "PROCESS_KINDS",
    "UNKNOWN",
    "ActionSpec",
    "Parameter",
    "Phase",
    "SinkShape",
    "action_named",
    "argument",
    "has_phase",
    "lines_of",
    "phase_named",
    "phases_of",
    "render_actions",
    "render_catalogue",
    "required_steps",
    "restart_delay",
    "shape_of",
    "takes_service_away",
]


def _in_protocol_order() -> tuple[Phase, ...]:
    found: list[Phase] = [phase for _, family in declared_in(phases, "PHASES") for phase in family]
    return tuple(sorted(found, key=lambda phase: phase.step))


PHASES: tuple[Phase, ...] = _in_protocol_order()
"""Every phase, in the order of the protocol."""

ACTIONS: tuple[ActionSpec, ...] = tuple(check_spec(action) for _, action in declared_in(actions, "ACTION"))
"""Every action, by name. One that must leave nothing behind is refused (TypeError)."""

_PHASES = {phase.name: phase for phase in PHASES}
_ACTIONS = {action.name: action for action in ACTIONS}


def phase_named(name: str) -> Phase:
    """The phase called ``name``. Raises KeyError."""
    return _PHASES[name]


def action_named(name: str) -> ActionSpec:
    """The declaration of the action called ``name``. Raises KeyError."""
    return _ACTIONS[name]


def takes_service_away(plan: Plan) -> bool:
    """Whether clients lose a broker, or a target's server, for a while."""
    actions = [action for fault in plan.faults for action in fault.actions]
    return any(action.target in action_named(action.name).takes_service_away for action in actions)


def argument(action: Action, name: str) -> Value | None:
    """An argument of an action as written, else its declared default. Raises KeyError for a name it does not take."""
    return action_named(action.name).value(action, name)


def ends_by_death(fault: Fault, number: int) -> bool:
    """Whether what an action of the fault has stopped, until a point, is killed by the next one: it never goes on."""
    action, following = fault.actions[number], fault.actions[number + 1 : number + 2]
    if action.until is None or not action_named(action.name).required_of(action.target, killed=True):
        return False
    return any((one.name, one.target) == ("kill", action.target) for one in following)


def restart_delay(fault: Fault, number: int) -> float:
    """Seconds from a death by this action of the fault to the restart, as an action behind it sets it for its target:
    the last of these up to another death behind them."""
    found: float | None = None
    for action in fault.actions[number + 1 :]:
        spec = action_named(action.name)
        if action.target != fault.actions[number].target:
            continue
        if spec.restart_delay:
            found = spec.seconds(action, spec.restart_delay)
        elif found is not None and "kill" in (action.name, spec.counts_as):
            break
    return found or 0.0


def has_phase(shape: SinkShape, phase: Phase) -> bool:
    """Whether a job with a sink of this shape can have ``phase``."""
    return shape.execution in phase.executions and is_one_of(shape, phase.sinks)


def is_one_of(shape: SinkShape, sinks: Sinks) -> bool:
    """Whether a sink of this shape, with its job, may be one of these."""
    having: dict[Sinks, bool] = {
        "every": True,
        "v2": shape.v2,
        "aborting": shape.v2 or shape.file,
        "rows": shape.v2 or shape.file or shape.writes_batches,
        "manifest": shape.file,
        "kafka": "kafka" in shape.spoken_to,
        "kafka-transactions": shape.kafka_transactions,
        "python": shape.has_lines and (shape.foreach_batch or shape.python_source),
        "stateful": shape.stateful,
        "services": bool(shape.spoken_to),
        "own services": bool(shape.own_services),
        "files": shape.writes_files,
    }
    known = ("services", "files")  # of any sink
    return (shape.unknown and sinks not in known) or having[sinks]


def phases_of(shape: SinkShape) -> list[tuple[Phase, tuple[Edge, ...]]]:
    """The phases that a sink of this shape has, with their edges, in the order of the protocol."""
    return [(phase, phase.edges_in(shape.execution)) for phase in PHASES if has_phase(shape, phase)]


def required_steps(shape: SinkShape) -> frozenset[tuple[str, Edge | None]]:
    """The steps that each batch of a sink of this kind goes through: a trace that lacks one was not seen whole.

    ``query.start`` is once for each run instead. ``("line", None)`` stands for any line of the sink's code. Of a sink
    of which nothing is known only what every sink has is required; ``task.row`` depends on the number of rows.
    """
    steps: set[tuple[str, Edge | None]] = {
        (phase.name, edge)
        for phase in PHASES
        if phase.sinks == "every" and phase.traced and not phase.place
        for edge in phase.edges
    }
    if shape.v2:
        steps |= {(name, edge) for name in ("task.commit", "sink.commit") for edge in phase_named(name).edges}
    if shape.stateful:
        steps |= {("state.commit", edge) for edge in phase_named("state.commit").edges}
    if not shape.unknown and has_phase(shape, phase_named("line")):
        steps.add(("line", None))
    return frozenset(steps)


def render_catalogue(shape: SinkShape = UNKNOWN) -> list[dict[str, Any]]:
    """The phases (of one sink, else all) as rows for people: words and lists of words, ready for JSON."""
    return [
        {
            "name": phase.name,
            "edges": list(phase.edges),
            "selectors": [parameter.name for parameter in phase.selectors],
            "where": " or ".join(PROCESS_KINDS[kind] for kind in phase.met_in),
            "sinks": SINKS[phase.sinks],
            "meaning": phase.meaning,
            "two_phase_commit": phase.two_phase,
            "source": phase.source,
            "environments": list(ENVIRONMENTS),
            "after_a_crash": after_a_crash(phase),
            "example": example_of(phase),
        }
        for phase in PHASES
        if has_phase(shape, phase)
    ]


def after_a_crash(phase: Phase) -> dict[str, str]:
    """What the protocol requires, by the edge at which the driver dies; of a broker's phase, the broker. One without
    edges has ``before``."""
    target = "broker" if phase.where == "broker" else "driver"
    required = action_named("kill").required_of(target)
    batch = 0 if any(selector.name == "batch" for selector in phase.selectors) else None
    found = {edge: required_at(required, (phase.name, edge), batch) for edge in phase.edges or ("before",)}
    return {edge: PROTOCOL[one.kind] for edge, one in found.items() if one is not None}


def render_actions() -> list[dict[str, Any]]:
    """The actions as rows for people: words and lists of words, ready for JSON."""
    return [
        {
            "name": action.name,
            "targets": list(action.targets),
            "environments": [env for env in ENVIRONMENTS if env == "docker" or not action.network],
            "in_docker_only": [one for one in action.targets if action.network or one == NODE],
            "arguments": {parameter.name: parameter.meaning for parameter in action.arguments},
            "until": action.takes_until,
            "meaning": action.meaning,
            "example": action.example,
        }
        for action in ACTIONS
    ]


def example_of(phase: Phase) -> str:
    """How a point of ``phase`` is written."""
    chosen = [f"{parameter.name}={parameter.sample}" for parameter in phase.selectors if parameter.sample]
    edge = f":{phase.edges[-1]}" if phase.edges else ""
    return phase.example + edge + (f"[{', '.join(chosen)}]" if chosen else "")
