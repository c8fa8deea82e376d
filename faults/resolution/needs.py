"""What has to be reported, and by whom, for a plan to be carried out: probes are asked for no more than that."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Literal

from ...plans import Edge, Moment, Plan, Point
from ..actions._links import service_of
from ..catalogue import action_named, has_phase, is_one_of, phase_named, phases_of
from ..declarations import SPARK_TARGETS
from ..language import Path
from ..shape import SinkShape

PhasePoint = tuple[str, Edge]
"""A phase and its edge."""

Files = Literal["none", "but the engine's", "all"]

Line = tuple[str, int]
"""A file, relative to the sink's directory, and the number of a line of it."""

Method = tuple[str, str]
"""The full name of a class of a JVM, and the name of a method of it."""

RUNS_OF_TASKS: frozenset[PhasePoint] = frozenset({("task.run", "before"), ("task.run", "after")})

TRACED_ROWS = frozenset({1, 5})
"""The rows of each task that a trace reports as task.row: the fifth, and the first for tasks that have fewer."""

OF_A_TASK = ("stage", "partition", "attempt")
"""What chooses the points of tasks alone."""


def points_of(plan: Plan) -> Iterator[tuple[Point, Path]]:
    """Every point that the plan names, with its path."""
    for index, fault in enumerate(plan.faults):
        if isinstance(fault.at, Point):
            yield fault.at, (index, "at")
        for number, action in enumerate(fault.actions):
            if action.until:
                yield action.until, (index, "actions", number, "until")
        for number, hold in enumerate(fault.holds):
            yield hold, (index, "holds", number)


def points_named_in(place: str, points: Iterable[Point]) -> frozenset[PhasePoint]:
    """The points named by the plan at which a thread of ``place`` is stopped."""
    return frozenset(
        (point.phase, point.edge) for point in points if point.edge and place in phase_named(point.phase).met_in
    )


def executor_points(plan: Plan, points: Collection[Point], shape: SinkShape, trace: bool) -> frozenset[PhasePoint]:
    """What the plan names in tasks, and what is evidence of what becomes of them."""
    return (
        points_named_in("executor", points)
        | _evidence_of_attempts(plan)
        | _beginnings_of_stages(points)
        | _tasks_of_effects(points)
        | _parts_of_a_recovery(plan, shape)
        | points_traced("executor", shape, trace)
    )


def rows_reported(points: Iterable[Point], trace: bool) -> frozenset[int]:
    named = {int(point.where["row"]) for point in points if "row" in point.where}
    return frozenset(named | (TRACED_ROWS if trace else set()))


def lines_reported(points: Iterable[Point], shape: SinkShape, trace: bool) -> frozenset[Line]:
    """Those that the plan names, or all of the sink's and of its modules'."""
    named = {_line_of(point) for point in points if point.phase == "line"}
    if trace and has_phase(shape, phase_named("line")):
        named |= {(file, line) for file, of_file in shape.modules.items() for line in of_file}
    return frozenset(named)


def _line_of(point: Point) -> Line:
    return str(point.where["file"]), int(point.where["line"])


def batches_of_lines(plan: Plan) -> dict[Line, frozenset[int]]:
    """The lines that the plan asks for in some batches only, with these."""
    named: dict[Line, list[Point]] = {}
    for point, _ in points_of(plan):
        if point.phase == "line":
            named.setdefault(_line_of(point), []).append(point)
    return {
        line: frozenset(int(point.where["batch"]) for point in points)
        for line, points in named.items()
        if all("batch" in point.where for point in points)
    }


def services_proxied(points: Iterable[Point], plan: Plan, shape: SinkShape, trace: bool) -> frozenset[str]:
    """The services that the plan's requests name, and what acts on connections, else all that the sink may use, as in a
    trace."""
    named = [point.where.get("service") for point in points if is_request(point)]
    named += [
        service_of(action, fault.at.where if isinstance(fault.at, Point) else {})
        for fault in plan.faults
        for action in fault.actions
        if action_named(action.name).through_proxy
    ]
    return shape.spoken_to if trace or None in named else frozenset(str(service) for service in named)


def arguments_needing_files(plan: Plan) -> list[tuple[int, int, str]]:
    """The arguments for which changes of files have to be reported: the numbers of fault and action, and the name."""
    return [
        (index, number, parameter.name)
        for index, fault in enumerate(plan.faults)
        for number, action in enumerate(fault.actions)
        for parameter in action_named(action.name).arguments
        if parameter.needs_files and parameter.name in action.arguments
    ]


def files_reported(points: Iterable[Point], trace: bool) -> Files:
    """The engine's own only where a plan names them: a state store alone writes hundreds in a batch."""
    changes = [point for point in points if phase_named(point.phase).where == "files"]
    if any(map(in_the_checkpoint, changes)):
        return "all"
    return "but the engine's" if trace or changes else "none"


def points_traced(place: str, shape: SinkShape, trace: bool) -> frozenset[PhasePoint]:
    """Every point of ``place`` that the sink has, if all are to be reported: but for what only a plan can name."""
    found = [
        (phase, edges)
        for phase, edges in phases_of(shape)
        if phase.where == place and not phase.place and phase.traced and is_one_of(shape, phase.traced)
    ]
    return frozenset((phase.name, edge) for phase, edges in found for edge in edges if trace)


def _evidence_of_attempts(plan: Plan) -> frozenset[PhasePoint]:
    """Starts and ends of tasks have to be reported where a higher attempt of one, or that it goes on, is evidence.

    So it is where something is done to a thread in Python code or in a method of a class: it may be that of a task.
    """
    of_a_thread = any(fault.actions[0].target is None and _any_thread(fault.at) for fault in plan.faults)
    needed = of_a_thread or targets_of(plan) & set(SPARK_TARGETS)
    return RUNS_OF_TASKS if needed else frozenset()


def targets_of(plan: Plan) -> set[str | None]:
    return {action.target for fault in plan.faults for action in fault.actions}


def _any_thread(at: Point | Moment) -> bool:
    """Whether the thread that is stopped there may be one of the driver's or one of a task's."""
    kinds = phase_named(at.phase).met_in if isinstance(at, Point) else ()
    return "python" in kinds or {"driver", "executor"} <= {*kinds}


def _tasks_of_effects(points: Iterable[Point]) -> frozenset[PhasePoint]:
    """Which task asks for a request or a change of a file is known by the beginnings and ends of tasks."""
    return RUNS_OF_TASKS if of_tasks(points) else frozenset()


def of_tasks(points: Iterable[Point]) -> bool:
    effects = [point for point in points if phase_named(point.phase).where in ("connection", "files")]
    return any(map(of_a_task, effects))


def of_a_task(point: Point) -> bool:
    """Whether it is a task's by what chooses it."""
    return any(name in point.where for name in OF_A_TASK)


def _beginnings_of_stages(points: Iterable[Point]) -> frozenset[PhasePoint]:
    """Stages are numbered by the starts of their tasks."""
    return frozenset({("task.run", "before")}) if any("stage" in point.where for point in points) else frozenset()


def _parts_of_a_recovery(plan: Plan, shape: SinkShape) -> frozenset[PhasePoint]:
    """Where a driver is ended, its successor's recovery is measured: up to the first task, and what loads state."""
    if "driver" not in targets_of(plan):
        return frozenset()
    loading = phase_named("state.load")
    loads = {(loading.name, edge) for edge in loading.edges} if has_phase(shape, loading) else set()
    return frozenset({("task.run", "before"), *loads})


def is_request(at: Point | Moment) -> bool:
    return isinstance(at, Point) and phase_named(at.phase).where == "connection"


def is_lookup(at: Point | Moment) -> bool:
    return isinstance(at, Point) and phase_named(at.phase).sinks == "own services"


def in_the_checkpoint(point: Point) -> bool:
    """Whether it is a change of a file there: any job makes some."""
    return phase_named(point.phase).where == "files" and str(point.where.get("path", "")).startswith("checkpoint")
