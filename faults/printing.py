"""The canonical text of plans and their parts. Nothing is checked here: that is the parser's."""

from __future__ import annotations

from ..plans import NUMBER, Action, Fault, Moment, Plan, Point
from .catalogue import ACTIONS, PHASES
from .values import print_duration, print_place, print_value


def format_plan(plan: Plan) -> str:
    """The canonical text of a plan, in one line.

    Parsing it gives the plan again, with edges filled in where a phase has only one. Nothing is checked: what the
    catalogue does not know is printed as it is, for an error to point at.
    """
    settings = [f"set {name} = {_setting(value)}" for name, value in plan.settings.items()]
    return "; ".join([*settings, *map(format_fault, plan.faults)])


def _setting(value: str) -> str:
    return value if value.isdecimal() else print_value(value)


def format_fault(fault: Fault) -> str:
    """The canonical text of one fault: also its name in tests and reports."""
    holds = " and ".join(f"hold({format_point(point)})" for point in fault.holds)
    actions = " then ".join(map(format_action, fault.actions))
    return f"{format_place(fault)} -> {actions}" + (f" with {holds}" if holds else "")


def format_place(fault: Fault) -> str:
    """Where a fault happens: the canonical text of its point, or ``at(3s)``."""
    return f"at({print_duration(fault.at.seconds)})" if isinstance(fault.at, Moment) else format_point(fault.at)


def format_point(point: Point) -> str:
    """The canonical text of a point: ``task.commit:before[batch=1, partition=0]#2``."""
    phase = next((phase for phase in PHASES if phase.name == point.phase), None)
    where = dict(point.where)
    place = phase.place if phase else None
    parts = [str(where.pop(name, "")) for name in place.selectors] if place else []
    name = point.phase + (f"[{place.separator.join([print_place(parts[0]), *parts[1:]])}]" if place else "")
    edge = point.edge or (phase.edges[0] if phase and len(phase.edges) == 1 else None)
    name += f":{edge}" if edge else ""
    order = [selector.name for selector in phase.selectors] if phase else []
    keys = sorted(where, key=lambda key: order.index(key) if key in order else len(order))
    selectors = ", ".join(f"{key}={print_value(where[key])}" for key in keys)
    return name + (f"[{selectors}]" if selectors else "") + (f"#{point.nth}" if point.nth is not None else "")


def format_action(action: Action) -> str:
    """The canonical text of an action: ``kill(driver)``, ``pause(executor[1], for=3s)``, ``delay(2s)``, ``fail``."""
    spec = next((spec for spec in ACTIONS if spec.name == action.name), None)
    positional = spec.positional if spec else None
    order = [argument.name for argument in spec.arguments] if spec else []
    keys = sorted(action.arguments, key=lambda key: order.index(key) if key in order else len(order))
    values = [
        print_value(action.arguments[key]) if key == positional else f"{key}={print_value(action.arguments[key])}"
        for key in keys
        if key != NUMBER
    ]
    given = ", ".join(([action.numbered_target] if action.target is not None else []) + values)
    until = f" until {format_point(action.until)}" if action.until else ""
    return action.name + (f"({given})" if given else "") + until
