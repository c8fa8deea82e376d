"""Check a plan against a sink and a master before anything starts, and say what has to be loaded for it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePath

from .catalogue import ALWAYS_REPORTED, action_named, has_phase, phase_named, phases_of
from .declarations import PLACES, SINKS, ActionSpec, Phase
from .errors import PlanError, listed
from .language import LocatedPlan, Path, format_plan, parse_located
from .model import Action, Edge, Fault, Moment, Plan, Point
from .shape import SinkShape

PhasePoint = tuple[str, Edge]
"""A phase and its edge."""

SPARK_TARGETS = ("executor", "worker", "node")
"""Targets whose tasks Spark attempts again."""


TRACED_ROW = 5
"""The row of each task that a trace reports as task.row."""


@dataclass(frozen=True)
class ResolvedPlan:
    """A plan that this sink and master can have, and what it needs.

    ``driver_points``, ``executor_points`` and ``broker_points`` are the points that have to be reported from each kind
    of process; those of the driver include the ones that always are. On ``local[n]`` the executor's rules fire in the
    driver's JVM. ``lines`` are the lines of the sink's file that have to be reported, ``rows`` the row numbers of
    ``task.row``.
    """

    plan: Plan
    shape: SinkShape
    master: str
    driver_points: frozenset[PhasePoint]
    executor_points: frozenset[PhasePoint]
    broker_points: frozenset[PhasePoint]
    rows: frozenset[int]
    lines: frozenset[int]

    @property
    def driver_phases(self) -> frozenset[str]:
        """The names of the phases whose rules the driver's JVM loads."""
        return frozenset(phase for phase, _ in self.driver_points)

    @property
    def executor_phases(self) -> frozenset[str]:
        """The names of the phases whose rules the executors' JVMs load."""
        return frozenset(phase for phase, _ in self.executor_points)

    @property
    def broker_phases(self) -> frozenset[str]:
        """The names of the phases whose rules the brokers load: if there are any, brokers have to be armed."""
        return frozenset(phase for phase, _ in self.broker_points)

    def phases(self, side: str) -> frozenset[str]:
        """The names of the phases of one side: ``driver``, ``executor`` or ``broker``. Raises KeyError."""
        sides = {"driver": self.driver_phases, "executor": self.executor_phases, "broker": self.broker_phases}
        return sides[side]


def resolve(
    plan: Plan | LocatedPlan, shape: SinkShape, master: str, *, trace: bool = False, network: bool = False
) -> ResolvedPlan:
    """The plan with all that it needs, if this sink can have its phases and this master its actions.

    ``master`` is ``local[n]`` or ``standalone``. With ``trace`` every point of the driver, the executors and the sink's
    lines is reported besides. ``network``: the environment's machines have a network between them. Raises PlanError, at
    the place in the plan's text: that of a LocatedPlan, else the canonical text.
    """
    located = plan if isinstance(plan, LocatedPlan) else parse_located(format_plan(plan))
    for point, path in _points(located.plan):
        _check_phase(located, shape, point, path)
    for index, fault in enumerate(located.plan.faults):
        for number, action in enumerate(fault.actions):
            _check_action(_Site(located, shape, master, network, fault, action, index, number))
    points = [point for point, _ in _points(located.plan)]
    rows = {int(point.where["row"]) for point in points if "row" in point.where}
    lines = {int(point.where["line"]) for point in points if point.phase == "line"}
    if trace and has_phase(shape, phase_named("line")):
        lines |= shape.lines
    return ResolvedPlan(
        plan=located.plan,
        shape=shape,
        master=master,
        driver_points=_named_in("driver", points) | ALWAYS_REPORTED | _traced("driver", shape, trace),
        executor_points=_named_in("executor", points)
        | _evidence_of_attempts(located.plan)
        | _traced("executor", shape, trace),
        broker_points=_named_in("broker", points),
        rows=frozenset(rows | ({TRACED_ROW} if trace else set())),
        lines=frozenset(lines),
    )


def _points(plan: Plan) -> Iterator[tuple[Point, Path]]:
    """Every point that the plan names, with its path."""
    for index, fault in enumerate(plan.faults):
        if isinstance(fault.at, Point):
            yield fault.at, (index, "at")
        for number, action in enumerate(fault.actions):
            if action.until:
                yield action.until, (index, "actions", number, "until")
        for number, hold in enumerate(fault.holds):
            yield hold, (index, "holds", number)


def _named_in(place: str, points: Iterable[Point]) -> frozenset[PhasePoint]:
    """The points named by the plan at which a thread of ``place`` is stopped."""
    return frozenset(
        (point.phase, point.edge) for point in points if point.edge and phase_named(point.phase).where == place
    )


def _traced(place: str, shape: SinkShape, trace: bool) -> frozenset[PhasePoint]:
    """Every point of ``place`` that the sink has, if all are to be reported."""
    found = phases_of(shape) if trace else []
    return frozenset((phase.name, edge) for phase, edges in found for edge in edges if phase.where == place)


def _evidence_of_attempts(plan: Plan) -> frozenset[PhasePoint]:
    """The start of each task has to be reported where a higher attempt of one is the evidence of a fault."""
    targets = {action.target for fault in plan.faults for action in fault.actions}
    return frozenset({("task.run", "before")}) if targets & set(SPARK_TARGETS) else frozenset()


def _check_phase(located: LocatedPlan, shape: SinkShape, point: Point, path: Path) -> None:
    phase = phase_named(point.phase)
    if not has_phase(shape, phase):
        message = (
            f"{_sink(shape)} has no {phase.name} (only {SINKS[phase.sinks]} have): its phases are {_phases(shape)}"
        )
        raise located.error(message, (*path, "phase"))
    if phase.name == "line" and shape.python_file:
        _check_line(located, shape, point, path)


def _check_line(located: LocatedPlan, shape: SinkShape, point: Point, path: Path) -> None:
    named = PurePath(str(point.where["file"])).parts
    if PurePath(shape.python_file).parts[-len(named) :] != named:
        message = f"{point.where['file']} is not the sink's file: lines are those of {shape.file_name}"
        raise located.error(message, (*path, "where", "file"))
    line = int(point.where["line"])
    if line not in shape.lines:
        near = listed(map(str, _nearest_lines(line, shape.lines)))
        message = f"line {line} of {shape.file_name} begins no code of a function: the nearest that do are {near}"
        raise located.error(message, (*path, "where", "line"))


def _nearest_lines(line: int, lines: frozenset[int]) -> list[int]:
    """The two lines with code before ``line`` and the two after it."""
    ordered = sorted(lines)
    at = bisect_left(ordered, line)
    return ordered[max(0, at - 2) : at + 2]


def _sink(shape: SinkShape) -> str:
    return shape.file_name or "this sink"


def _phases(shape: SinkShape) -> str:
    """The phases that a sink has, with their edges: ``sink.write:before, sink.write:after, line[my_sink.py:N]``."""
    written = [f"{phase.name}:{edge}" for phase, edges in phases_of(shape) for edge in edges]
    if has_phase(shape, phase_named("line")):
        written.append(f"line[{shape.file_name or 'FILE'}:N]")
    return ", ".join(written)


@dataclass(frozen=True)
class _Site:
    """An action in its plan: the ``number``-th of the ``index``-th fault."""

    located: LocatedPlan
    shape: SinkShape
    master: str
    network: bool
    fault: Fault
    action: Action
    index: int
    number: int

    @property
    def spec(self) -> ActionSpec:
        return action_named(self.action.name)

    @property
    def phase(self) -> Phase | None:
        """The phase at which the thread is stopped, None at a moment."""
        return None if isinstance(self.fault.at, Moment) else phase_named(self.fault.at.phase)

    @property
    def text(self) -> str:
        return f"{self.action.name}({self.action.target})" if self.action.target else self.action.name

    def error(self, message: str, *part: str) -> PlanError:
        return self.located.error(message, (self.index, "actions", self.number, *part))


def _check_action(site: _Site) -> None:
    _check_network(site)
    _check_place(site)
    _check_order(site)
    match site.action.target:
        case "executor" | "node":
            _check_executor(site)
        case "worker":
            _check_worker(site)
        case "broker":
            _check_broker(site)
    if "error" in site.action.arguments and site.phase and site.phase.where != "python":
        message = f"{site.phase.name} is a step of the JVM, where fail raises a RuntimeException: leave error out"
        raise site.error(message, "arguments", "error")


def _check_network(site: _Site) -> None:
    if (site.spec.network or site.action.target == "node") and not site.network:
        raise site.error(f"{site.text} needs --env docker: in the local environment all machines are one", "name")


def _check_place(site: _Site) -> None:
    """Whether the action can be done where the fault stops a thread, or at a moment, where it stops none."""
    if site.phase is None and not site.spec.moment:
        raise site.error(f"{site.text} acts on a stopped thread, and at(...) stops none: name a point", "name")
    if site.phase and site.phase.where not in site.spec.places:
        valid = listed(PLACES[place] for place in site.spec.places)
        message = (
            f"{site.phase.name} stops the {PLACES[site.phase.where]}, where {site.action.name} cannot act: {valid}"
        )
        raise site.error(message, "name")


def _check_order(site: _Site) -> None:
    """Whether what the action follows comes before it: kill before restart, pause before resume."""
    if site.spec.follows is None:
        return
    here = site.fault.actions[: site.number]
    anywhere = [action for fault in site.located.plan.faults for action in fault.actions]
    earlier = here if site.spec.same_fault else anywhere
    if (site.spec.follows, site.action.target) not in {(action.name, action.target) for action in earlier}:
        where = "before it in its fault" if site.spec.same_fault else "in the plan"
        wanted = f"{site.spec.follows}({site.action.target})"
        raise site.error(f"{site.text} needs a {wanted} {where}, as in: {site.spec.example}", "name")


def _check_executor(site: _Site) -> None:
    """Executors are parked at the points of tasks; at a moment any executor of the job will do."""
    if site.master.startswith("local"):
        message = f"{site.text} needs --master standalone: on {site.master} tasks run in the driver"
        raise site.error(message, "target")
    if site.spec.follows or site.phase is None or site.phase.where == "executor":
        return
    valid = [phase.name for phase, _ in phases_of(site.shape) if phase.where == "executor"]
    message = f"{site.text} needs a point of a task, and {site.phase.name} stops the {PLACES[site.phase.where]}"
    raise site.error(f"{message}: valid: {', '.join(valid)}", "target")


def _check_broker(site: _Site) -> None:
    """There may be several brokers: the one that is parked is meant."""
    if site.spec.follows or (site.phase and site.phase.where == "broker"):
        return
    valid = [phase.name for phase, _ in phases_of(site.shape) if phase.where == "broker"]
    names = f"valid: {', '.join(valid)}" if valid else f"{_sink(site.shape)} has none"
    raise site.error(f"{site.text} needs a point that stops a broker: {names}", "target")


def _check_worker(site: _Site) -> None:
    """A Python worker is at work only while the rows of a Python data source pass through it."""
    python_in_tasks = site.shape.python_source or site.shape.unknown
    valid = [phase for phase, _ in phases_of(site.shape) if phase.serves_worker and python_in_tasks]
    if site.spec.follows or site.phase in valid:
        return
    wanted = f"{site.text} needs a point at which a Python worker serves the parked task"
    names = ", ".join(phase.name for phase in valid) or f"{_sink(site.shape)} has none"
    raise site.error(f"{wanted}: {'valid: ' if valid else ''}{names}", "target")
