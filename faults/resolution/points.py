"""Checks the points of a plan against a sink: its phases, batches, services and lines."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from ...plans import Action, Edge, Point, Value
from ..catalogue import action_named, has_phase, phase_named, phases_of
from ..declarations import (
    EXECUTIONS,
    SINKS,
    Execution,
    Phase,
)
from ..errors import listed
from ..language import LocatedPlan, Path
from ..protocols import protocol_of
from ..settings import settings_of
from ..shape import SinkShape
from ..values import print_place, print_value
from .needs import in_the_checkpoint, is_lookup, is_request

WILDCARDS = "*?["
"""With one of these a selector's text is a pattern (fnmatch)."""

MODULES_SHOWN = 8
"""How many of a sink's modules an error names."""


def check_phase(located: LocatedPlan, shape: SinkShape, point: Point, path: Path) -> None:
    phase = phase_named(point.phase)
    if missing := _missing_in(shape.execution, phase, point):
        raise located.error(
            f"{EXECUTIONS[shape.execution]} has no {missing}: its phases are {_phases(shape)}", (*path, "phase")
        )
    if not (has_phase(shape, phase) or in_the_checkpoint(point)):
        message = (
            f"{sink_name(shape)} has no {phase.name} (only for {SINKS[phase.sinks]}): its phases are {_phases(shape)}"
        )
        raise located.error(message, (*path, "phase"))
    if phase.name == "line" and shape.python_file:
        _check_line(located, shape, point, path)


def _missing_in(execution: Execution, phase: Phase, point: Point) -> str | None:
    """What of the point a query that Spark runs so does not go through: the phase, or its edge."""
    if execution not in phase.executions:
        return phase.name
    return f"{phase.name}:{point.edge}" if point.edge and point.edge not in phase.edges_in(execution) else None


def check_batch(located: LocatedPlan, batches: int | None, point: Point, path: Path) -> None:
    if batches is None or "batch" not in point.where:
        return
    count = settings_of(located.plan.settings).workload.get("batches", batches)
    if int(point.where["batch"]) >= count:
        has = f"it has batches 0 to {count - 1} ({located.named('batches')})"
        message = f"batch {point.where['batch']} is beyond the input: {has}"
        raise located.error(message, (*path, "where", "batch"))


def check_service(located: LocatedPlan, shape: SinkShape, point: Point, path: Path) -> None:
    if is_request(point):
        check_way(located, point.phase, (*path, "phase"))
        check_used(located, shape, point.where.get("service"), (*path, "where", "service"))
        _check_kind(located, shape, point, (*path, "where", "kind"))


def _check_kind(located: LocatedPlan, shape: SinkShape, point: Point, path: Path) -> None:
    kind = str(point.where.get("kind", "*"))
    services = services_at(point, shape)
    protocols = [protocol_of(service) for service in services]
    if is_lookup(point):
        _check_lookup(located, services, kind, path)
        return
    if set(kind) & set(WILDCARDS) or not protocols or any(protocol.may_have(kind) for protocol in protocols):
        return
    close = [one for protocol in protocols for one in protocol.meant_by(kind)]
    known = f"did you mean {listed(close)}?" if close else f"there are {listed(protocols[0].kinds, 'and')}, say"
    raise located.error(f"{listed(services)} has no request of the kind {print_value(kind)}: {known}", path)


def services_at(point: Point, shape: SinkShape) -> list[str]:
    """Those that a request or a lookup there may be for."""
    return [str(point.where["service"])] if "service" in point.where else sorted(shape.spoken_to)


def _check_lookup(located: LocatedPlan, services: list[str], kind: str, path: Path) -> None:
    known = list(dict.fromkeys(one for service in services for one in protocol_of(service).lookups))
    if not known:
        of_ours = f"services of HTTP that {located.named('proxy')} names"
        raise located.error(f"there is no lookup at {listed(services)}: it is for {of_ours}", path)
    if not set(kind) & set(WILDCARDS) and kind not in known:
        message = f"no lookup is of the kind {print_value(kind)}: it is {listed(known)}"
        raise located.error(message, path)


def check_way(located: LocatedPlan, name: str, path: Path) -> None:
    """What goes through the harness cannot be cut off from a machine."""
    cut = next((action for fault in located.plan.faults for action in fault.actions if _cuts(action)), None)
    if cut is not None:
        raise located.error(
            f"{name} goes through the harness, and {cut.name} does not cut that way: use two plans", path
        )


def _cuts(action: Action) -> bool:
    return action_named(action.name).network


def check_used(located: LocatedPlan, shape: SinkShape, service: Value | None, path: Path) -> None:
    if service is not None and service not in shape.spoken_to:
        used = f"it uses {listed(sorted(shape.spoken_to))}" if shape.spoken_to else "it uses none that passes a proxy"
        known = f"{used}; {located.named('proxy')} NAME=HOST:PORT names one of your own"
        raise located.error(f"{sink_name(shape)} does not use {print_value(service)}: {known}", path)


def _check_line(located: LocatedPlan, shape: SinkShape, point: Point, path: Path) -> None:
    named = str(point.where["file"])
    files = shape.files_named(named)
    if len(files) != 1:
        known = listed(files or list(shape.modules)[:MODULES_SHOWN])
        problem = f"may be {known}: name one of them" if files else _no_file_of(shape, known)
        raise located.error(f"{print_place(named)} {problem}", (*path, "where", "file"))
    line, lines = int(point.where["line"]), shape.modules[files[0]]
    if line not in lines:
        near = listed(map(str, _nearest_lines(line, lines)))
        instead = f"the nearest start at {near}" if lines else "it has none"
        message = f"no statement inside a function starts at line {line} of {files[0]}: {instead}"
        raise located.error(message, (*path, "where", "line"))


def _no_file_of(shape: SinkShape, known: str) -> str:
    if len(shape.modules) == 1:
        return f"is not the sink's file: lines are those of {shape.file_name}"
    return f"is neither the sink's file nor a module of its directory that it imports: lines are those of {known}"


def _nearest_lines(line: int, lines: frozenset[int]) -> list[int]:
    """The two lines with code before ``line`` and the two after it."""
    ordered = sorted(lines)
    at = bisect_left(ordered, line)
    return ordered[max(0, at - 2) : at + 2]


def sink_name(shape: SinkShape) -> str:
    return shape.file_name or "this sink"


def _phases(shape: SinkShape) -> str:
    """The phases that a sink has, with their edges: ``sink.write:before, sink.write:after, line[my_sink.py:N]``."""
    return ", ".join(text for phase, edges in phases_of(shape) for text in _written(phase, edges, shape))


def _written(phase: Phase, edges: Sequence[Edge], shape: SinkShape) -> list[str]:
    if phase.name == "line":
        files = [file for file, lines in shape.modules.items() if lines][:MODULES_SHOWN] or ["FILE"]
        return [f"line[{file}:N]" for file in files]
    place = f"[{phase.place.separator.join(phase.place.selectors).upper()}]" if phase.place else ""
    return [f"{phase.name}{place}:{edge}" for edge in edges]
