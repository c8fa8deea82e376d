"""Check a plan against a sink and a master before anything starts, and say what has to be loaded for it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from ..plans import Action, Edge, Fault, Moment, Plan, Point, Value
from .actions._brokers import BY_NUMBER, GROUP_COORDINATOR, chosen
from .actions._links import service_of
from .capabilities import FOLLOWERS
from .catalogue import action_named, has_phase, phase_named, phases_of
from .checkpoints import MANIFEST
from .declarations import (
    ALWAYS_REPORTED,
    EXECUTIONS,
    ITSELF,
    PROCESS_KINDS,
    SERVERS,
    SINKS,
    ActionSpec,
    Execution,
    Phase,
)
from .errors import PlanError, listed, nearest
from .language import LocatedPlan, Path, format_plan, parse_located
from .protocols import PROTOCOLS, protocol_of
from .settings import settings_of
from .shape import SinkShape
from .values import print_place, print_value

PhasePoint = tuple[str, Edge]
"""A phase and its edge."""

Files = Literal["none", "but the engine's", "all"]

Line = tuple[str, int]
"""A file, relative to the sink's directory, and the number of a line of it."""

Method = tuple[str, str]
"""The full name of a class of a JVM, and the name of a method of it."""

RUNS_OF_TASKS: frozenset[PhasePoint] = frozenset({("task.run", "before"), ("task.run", "after")})

SPARK_TARGETS = ("executor", "worker", "node")
"""Targets whose tasks Spark attempts again."""


WILDCARDS = "*?["
"""With one of these a selector's text is a pattern (fnmatch)."""

MODULES_SHOWN = 8
"""How many of a sink's modules an error names."""

TRACED_ROWS = frozenset({1, 5})
"""The rows of each task that a trace reports as task.row: the fifth, and the first for tasks that have fewer."""


@dataclass(frozen=True)
class ResolvedPlan:
    """A plan that this sink and master can have, and what it needs.

    ``driver_points``, ``executor_points`` and ``broker_points`` are the points that have to be reported from each kind
    of process; those of the driver include the ones that always are. On ``local[n]`` the executor's rules fire in the
    driver's JVM. ``lines`` are the lines that have to be reported: of the sink's file and the modules of its directory,
    which ``plan`` names by their path relative to that directory. ``calls`` are the Python functions that it names,
    ``methods`` those of the driver's JVM, ``rows`` the row numbers of ``task.row``.
    ``workers``: which Python worker serves a task has to be reported. ``proxied`` are the services of targets to which
    the job has to speak by a proxy. ``files`` says whether changes of files have to be reported: of all, or but for
    what the engine itself writes to the checkpoint; ``unsynced``, whether it has to be known what of them is not
    synced.
    """

    plan: Plan
    shape: SinkShape
    master: str
    driver_points: frozenset[PhasePoint]
    executor_points: frozenset[PhasePoint]
    broker_points: frozenset[PhasePoint]
    rows: frozenset[int]
    lines: frozenset[Line]
    calls: frozenset[str] = frozenset()
    methods: frozenset[Method] = frozenset()
    workers: bool = False
    proxied: frozenset[str] = frozenset()
    files: Files = "none"
    unsynced: bool = False

    @property
    def broker_phases(self) -> frozenset[str]:
        """The names of the phases whose rules the brokers load: if there are any, brokers have to be armed."""
        return frozenset(phase for phase, _ in self.broker_points)


def resolve(
    plan: Plan | LocatedPlan,
    shape: SinkShape,
    master: str,
    *,
    trace: bool = False,
    network: bool = False,
    brokers: int = len(BY_NUMBER),
    no_files: str = "",
    batches: int | None = None,
) -> ResolvedPlan:
    """The plan with all that it needs, if this sink can have its phases and this master its actions.

    ``master`` is ``local[n]`` or ``standalone``. With ``trace`` every point of the driver, the executors and the sink's
    lines is reported besides. The environment has so many ``brokers``; ``network``: its machines have a network between
    them; ``no_files``: why changes of files cannot be stopped, if so. ``batches`` of the job, unless the plan sets
    another number; None where it is not known. Raises PlanError, at the place in its text: that of a LocatedPlan, else
    the canonical text.
    """
    located = plan if isinstance(plan, LocatedPlan) else parse_located(format_plan(plan))
    _check_brokers(located, brokers)
    for point, path in _points(located.plan):
        _check_phase(located, shape, point, path)
        _check_batch(located, batches, point, path)
        _check_service(located, shape, point, path)
        if no_files and phase_named(point.phase).where == "files":
            raise located.error(f"{point.phase} is not possible here: {no_files}", (*path, "phase"))
    if no_files and (needing := _needing_files(located.plan)):
        index, number, name = needing[0]
        message = f"{name} is not possible here: {no_files}"
        raise located.error(message, (index, "actions", number, "arguments", name))
    for index, fault in enumerate(located.plan.faults):
        for number, action in enumerate(fault.actions):
            _check_action(_PlannedAction(located, shape, master, network, brokers, fault, action, index, number))
    plan, unsynced = _with_files(located.plan, shape), bool(_needing_files(located.plan))
    points = [point for point, _ in _points(plan)]
    rows = {int(point.where["row"]) for point in points if "row" in point.where}
    lines = {(str(point.where["file"]), int(point.where["line"])) for point in points if point.phase == "line"}
    if trace and has_phase(shape, phase_named("line")):
        lines |= {(file, line) for file, of_file in shape.modules.items() for line in of_file}
    return ResolvedPlan(
        plan=plan,
        shape=shape,
        master=master,
        driver_points=_named_in("driver", points) | ALWAYS_REPORTED | _traced("driver", shape, trace),
        executor_points=_named_in("executor", points)
        | _evidence_of_attempts(plan)
        | _beginnings_of_stages(points)
        | _tasks_of_effects(points)
        | _parts_of_a_recovery(plan, shape)
        | _traced("executor", shape, trace),
        broker_points=_named_in("broker", points),
        rows=frozenset(rows | (TRACED_ROWS if trace else set())),
        lines=frozenset(lines),
        calls=frozenset(str(point.where["function"]) for point in points if point.phase == "call"),
        methods=frozenset(
            (str(point.where["class"]), str(point.where["method"])) for point in points if point.phase == "jvm"
        ),
        workers=_of_tasks(points) or "worker" in _targets(plan),
        proxied=_proxied(points, plan, shape, trace),
        files=_files(points, unsynced or (trace and not no_files and shape.writes_files)),
        unsynced=unsynced,
    )


def _check_brokers(located: LocatedPlan, brokers: int) -> None:
    wanted = settings_of(located.plan.settings).brokers
    if wanted is not None and wanted != brokers:
        message = f"the plan needs {wanted} brokers, and there {'is' if brokers == 1 else 'are'} {brokers}: --brokers"
        raise located.error(f"{message} {wanted}", ("settings", "brokers"))


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


def _proxied(points: Iterable[Point], plan: Plan, shape: SinkShape, trace: bool) -> frozenset[str]:
    """The services that the plan's requests name, and what acts on connections, else all that the sink may use, as in a
    trace."""
    named = [point.where.get("service") for point in points if _is_request(point)]
    named += [
        service_of(action, fault.at.where if isinstance(fault.at, Point) else {})
        for fault in plan.faults
        for action in fault.actions
        if action_named(action.name).through_proxy
    ]
    return shape.spoken_to if trace or None in named else frozenset(str(service) for service in named)


def _is_request(at: Point | Moment) -> bool:
    return isinstance(at, Point) and phase_named(at.phase).where == "connection"


def _needing_files(plan: Plan) -> list[tuple[int, int, str]]:
    """The arguments for which changes of files have to be reported: the numbers of fault and action, and the name."""
    return [
        (index, number, parameter.name)
        for index, fault in enumerate(plan.faults)
        for number, action in enumerate(fault.actions)
        for parameter in action_named(action.name).arguments
        if parameter.needs_files and parameter.name in action.arguments
    ]


def _files(points: Iterable[Point], trace: bool) -> Files:
    """The engine's own only where a plan names them: a state store alone writes hundreds in a batch."""
    changes = [point for point in points if phase_named(point.phase).where == "files"]
    if any(map(_in_the_checkpoint, changes)):
        return "all"
    return "but the engine's" if trace or changes else "none"


def _traced(place: str, shape: SinkShape, trace: bool) -> frozenset[PhasePoint]:
    """Every point of ``place`` that the sink has, if all are to be reported: but for what only a plan can name."""
    found = [(phase, edges) for phase, edges in phases_of(shape) if phase.where == place and not phase.place]
    return frozenset((phase.name, edge) for phase, edges in found for edge in edges if trace)


def _evidence_of_attempts(plan: Plan) -> frozenset[PhasePoint]:
    """Starts and ends of tasks have to be reported where a higher attempt of one, or that it goes on, is evidence.

    So it is where something is done to a thread that runs Python code: it may be that of a task.
    """
    in_python = any(fault.actions[0].target is None and _in_python(fault.at) for fault in plan.faults)
    needed = in_python or _targets(plan) & set(SPARK_TARGETS)
    return RUNS_OF_TASKS if needed else frozenset()


def _targets(plan: Plan) -> set[str | None]:
    return {action.target for fault in plan.faults for action in fault.actions}


def _in_python(at: Point | Moment) -> bool:
    return isinstance(at, Point) and phase_named(at.phase).where == "python"


def _tasks_of_effects(points: Iterable[Point]) -> frozenset[PhasePoint]:
    """Which task asks for a request or a change of a file is known by the beginnings and ends of tasks."""
    return RUNS_OF_TASKS if _of_tasks(points) else frozenset()


def _of_tasks(points: Iterable[Point]) -> bool:
    effects = [point for point in points if phase_named(point.phase).where in ("connection", "files")]
    return any(name in point.where for point in effects for name in ("stage", "partition", "attempt"))


def _beginnings_of_stages(points: Iterable[Point]) -> frozenset[PhasePoint]:
    """Stages are numbered by the starts of their tasks."""
    return frozenset({("task.run", "before")}) if any("stage" in point.where for point in points) else frozenset()


def _parts_of_a_recovery(plan: Plan, shape: SinkShape) -> frozenset[PhasePoint]:
    """Where a driver is ended, its successor's recovery is measured: up to the first task, and what loads state."""
    if "driver" not in _targets(plan):
        return frozenset()
    loading = phase_named("state.load")
    loads = {(loading.name, edge) for edge in loading.edges} if has_phase(shape, loading) else set()
    return frozenset({("task.run", "before"), *loads})


def _check_phase(located: LocatedPlan, shape: SinkShape, point: Point, path: Path) -> None:
    phase = phase_named(point.phase)
    if missing := _missing_in(shape.execution, phase, point):
        raise located.error(
            f"{EXECUTIONS[shape.execution]} has no {missing}: its phases are {_phases(shape)}", (*path, "phase")
        )
    if not (has_phase(shape, phase) or _in_the_checkpoint(point)):
        message = f"{_sink(shape)} has no {phase.name} (only for {SINKS[phase.sinks]}): its phases are {_phases(shape)}"
        raise located.error(message, (*path, "phase"))
    if phase.name == "line" and shape.python_file:
        _check_line(located, shape, point, path)


def _check_batch(located: LocatedPlan, batches: int | None, point: Point, path: Path) -> None:
    if batches is None or "batch" not in point.where:
        return
    count = settings_of(located.plan.settings).workload.get("batches", batches)
    if int(point.where["batch"]) >= count:
        message = f"batch {point.where['batch']} is beyond the input: it has batches 0 to {count - 1} (--batches)"
        raise located.error(message, (*path, "where", "batch"))


def _in_the_checkpoint(point: Point) -> bool:
    """Whether it is a change of a file there: any job makes some."""
    return phase_named(point.phase).where == "files" and str(point.where.get("path", "")).startswith("checkpoint")


def _check_service(located: LocatedPlan, shape: SinkShape, point: Point, path: Path) -> None:
    if _is_request(point):
        _check_way(located, point.phase, (*path, "phase"))
        _check_used(located, shape, point.where.get("service"), (*path, "where", "service"))
        _check_kind(located, shape, point, (*path, "where", "kind"))


def _check_kind(located: LocatedPlan, shape: SinkShape, point: Point, path: Path) -> None:
    kind = str(point.where.get("kind", "*"))
    services = [str(point.where["service"])] if "service" in point.where else sorted(shape.spoken_to)
    protocols = [protocol_of(service) for service in services]
    if set(kind) & set(WILDCARDS) or not protocols or any(protocol.may_have(kind) for protocol in protocols):
        return
    close = [one for protocol in protocols for one in protocol.meant_by(kind)]
    known = f"did you mean {listed(close)}?" if close else f"there are {listed(protocols[0].kinds, 'and')}, say"
    raise located.error(f"{listed(services)} has no request of the kind {print_value(kind)}: {known}", path)


def _check_way(located: LocatedPlan, name: str, path: Path) -> None:
    """What goes through the harness cannot be cut off from a machine."""
    cut = next((action for fault in located.plan.faults for action in fault.actions if _cuts(action)), None)
    if cut is not None:
        raise located.error(
            f"{name} goes through the harness, and {cut.name} does not cut that way: use two plans", path
        )


def _check_used(located: LocatedPlan, shape: SinkShape, service: Value | None, path: Path) -> None:
    if service is not None and service not in shape.spoken_to:
        used = f"it uses {listed(sorted(shape.spoken_to))}" if shape.spoken_to else "it uses none that passes a proxy"
        known = f"{used}; --proxy NAME=HOST:PORT names one of your own"
        raise located.error(f"{_sink(shape)} does not use {print_value(service)}: {known}", path)


def _cuts(action: Action) -> bool:
    return action_named(action.name).network


def _missing_in(execution: Execution, phase: Phase, point: Point) -> str | None:
    """What of the point a query that Spark runs so does not go through: the phase, or its edge."""
    if execution not in phase.executions:
        return phase.name
    return f"{phase.name}:{point.edge}" if point.edge and point.edge not in phase.edges_in(execution) else None


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


def _with_files(plan: Plan, shape: SinkShape) -> Plan:
    """The plan with each line's file named as probes report it: relative to the sink's directory."""

    def named(point: Point) -> Point:
        files = shape.files_named(str(point.where["file"])) if point.phase == "line" else []
        return replace(point, where={**point.where, "file": files[0]}) if files else point

    def acted(action: Action) -> Action:
        return replace(action, until=named(action.until)) if action.until else action

    return Plan(
        tuple(
            Fault(
                at=named(fault.at) if isinstance(fault.at, Point) else fault.at,
                actions=tuple(map(acted, fault.actions)),
                holds=tuple(map(named, fault.holds)),
            )
            for fault in plan.faults
        ),
        plan.settings,
    )


def _nearest_lines(line: int, lines: frozenset[int]) -> list[int]:
    """The two lines with code before ``line`` and the two after it."""
    ordered = sorted(lines)
    at = bisect_left(ordered, line)
    return ordered[max(0, at - 2) : at + 2]


def _sink(shape: SinkShape) -> str:
    return shape.file_name or "this sink"


def _phases(shape: SinkShape) -> str:
    """The phases that a sink has, with their edges: ``sink.write:before, sink.write:after, line[my_sink.py:N]``."""
    written = [f"{phase.name}:{edge}" for phase, edges in phases_of(shape) for edge in edges if not phase.place]
    if has_phase(shape, phase_named("line")):
        files = [file for file, lines in shape.modules.items() if lines][:MODULES_SHOWN] or ["FILE"]
        written += [f"line[{file}:N]" for file in files]
    return ", ".join(written)


@dataclass(frozen=True)
class _PlannedAction:
    """An action in its plan: the ``number``-th of the ``index``-th fault."""

    located: LocatedPlan
    shape: SinkShape
    master: str
    network: bool
    brokers: int
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
        return self.action.on_target

    @property
    def stopped(self) -> str:
        """``sink.commit stops the driver JVM``; empty at a moment."""
        return f"{self.phase.name} stops the {PROCESS_KINDS[self.phase.where]}" if self.phase else ""

    def error(self, message: str, *part: str) -> PlanError:
        return self.located.error(message, (self.index, "actions", self.number, *part))


def _check_action(planned: _PlannedAction) -> None:
    _check_network(planned)
    _check_connections(planned)
    _check_process(planned)
    _check_execution(planned)
    _check_order(planned)
    _check_reader(planned)
    _check_answer(planned)
    match planned.action.target:
        case "executor" | "node":
            _check_executor(planned)
        case "worker":
            _check_worker(planned)
        case "broker":
            _check_broker(planned)
        case target if target == ITSELF:
            _check_itself(planned)
        case target if target == MANIFEST:
            _check_manifest(planned)
        case service if service in SERVERS:
            _check_server(planned)
    _check_arguments(planned)


def _check_arguments(planned: _PlannedAction) -> None:
    """Whether the arguments can be given where the fault stops a thread."""
    for parameter in planned.spec.arguments:
        given = parameter.name in planned.action.arguments
        if given and planned.phase and planned.phase.where not in parameter.stopped_in:
            message = f"{planned.stopped}, {parameter.elsewhere}: leave {parameter.name} out"
            raise planned.error(message, "arguments", parameter.name)
        if given and parameter.without_edge and planned.phase and planned.phase.edges:
            message = f"{parameter.name} is for a point without edges: {planned.phase.name} has an edge for that"
            raise planned.error(message, "arguments", parameter.name)
        if given and parameter.targets and planned.action.target not in parameter.targets:
            message = f"{parameter.name} of {planned.spec.name} is for {listed(parameter.targets)} only"
            raise planned.error(message, "arguments", parameter.name)
        choices = parameter.choices_in.get(planned.phase.where, ()) if planned.phase else ()
        if given and choices and planned.action.arguments[parameter.name] not in choices:
            message = f"{planned.stopped}, where {parameter.name} is {listed(choices)}"
            raise planned.error(message, "arguments", parameter.name)


def _check_network(planned: _PlannedAction) -> None:
    if (planned.spec.network or planned.action.target == "node") and not planned.network:
        raise planned.error(f"{planned.text} needs --env docker: in the local environment all machines are one", "name")


def _check_connections(planned: _PlannedAction) -> None:
    """Whether the job has connections for the action that pass a proxy."""
    if not planned.spec.through_proxy:
        return
    path: Path = (planned.index, "actions", planned.number)
    _check_way(planned.located, planned.text, (*path, "name"))
    service = planned.action.arguments.get("service")
    _check_used(planned.located, planned.shape, service, (*path, "arguments", "service"))
    if not planned.shape.spoken_to:
        known = "it uses no service; --proxy NAME=HOST:PORT names one of your own"
        raise planned.error(f"{planned.text} needs a service that {_sink(planned.shape)} speaks to: {known}", "name")


def _check_process(planned: _PlannedAction) -> None:
    """Whether the action can be done where the fault stops a thread, or at a moment, where it stops none."""
    if planned.phase is None and not planned.spec.moment:
        raise planned.error(f"{planned.text} acts on a stopped thread, and at(...) stops none: name a point", "name")
    if planned.phase and planned.phase.where not in planned.spec.stopped_in:
        valid = listed(PROCESS_KINDS[kind] for kind in planned.spec.stopped_in)
        raise planned.error(f"{planned.stopped}, where {planned.action.name} cannot act: {valid}", "name")


def _check_execution(planned: _PlannedAction) -> None:
    """Whether a query that Spark runs so can have the action."""
    if planned.shape.execution not in planned.spec.executions:
        having = listed(EXECUTIONS[one] for one in planned.spec.executions)
        raise planned.error(f"{planned.text} needs {having}: this is {EXECUTIONS[planned.shape.execution]}", "name")


def _check_order(planned: _PlannedAction) -> None:
    """Whether what the action follows comes before it: kill before restart, pause before resume."""
    if planned.spec.follows is None:
        return
    here = planned.fault.actions[: planned.number]
    anywhere = [action for fault in planned.located.plan.faults for action in fault.actions]
    earlier = here if planned.spec.same_fault else anywhere
    if not any(_is_like(action, planned) for action in earlier):
        where = "before it in its fault" if planned.spec.same_fault else "in the plan"
        wanted = f"{planned.spec.follows}({planned.action.target})"
        raise planned.error(f"{planned.text} needs a {wanted} {where}, as in: {planned.spec.example}", "name")


def _check_reader(planned: _PlannedAction) -> None:
    """Whether another one takes the place of who has read what is changed, and reads it."""
    reader = planned.spec.read_by_the_next
    later = [action for action in planned.fault.actions[planned.number + 1 :] if action.target == reader]
    if reader and not any(action.name == "kill" or action.until for action in later):
        wanted = f"{planned.text} is read by the next {reader} only: put kill({reader}) behind it in its fault"
        raise planned.error(f"{wanted}, as in: {planned.spec.example}", "name")


def _check_answer(planned: _PlannedAction) -> None:
    """Whether an answer with this error can be made up for what the fault stops."""
    at = planned.fault.at
    if not planned.spec.answers or isinstance(at, Moment):
        return
    services = {str(at.where["service"])} if "service" in at.where else set(planned.shape.spoken_to)
    kind, error = at.where.get("kind"), planned.action.arguments["error"]
    protocols = [protocol_of(service) for service in services]
    if not services or not all(protocol.errors for protocol in protocols):
        speaking = listed([*(name for name, protocol in PROTOCOLS.items() if protocol.errors), "HTTP"])
        message = f"an answer can be made up for {speaking} only: name the service, as in {planned.spec.example}"
        raise planned.error(message, "name")
    for protocol in protocols:
        if kind not in protocol.refusable:
            message = f"{planned.text} needs a kind of request whose answer can be made up: one of "
            raise planned.error(message + listed(f"kind={name}" for name in protocol.refusable), "name")
        if error not in protocol.errors:
            message = f"no error is called {print_value(error)}: {nearest(str(error), protocol.errors)}"
            raise planned.error(message, "arguments", "error")


def _is_like(action: Action, planned: _PlannedAction) -> bool:
    """Whether ``action`` is one that the planned one may follow."""
    names = (action.name, action_named(action.name).counts_as)
    return planned.spec.follows in names and action.target == planned.action.target


def _check_executor(planned: _PlannedAction) -> None:
    """Executors are parked at the points of tasks; at a moment any executor of the job will do."""
    if planned.master.startswith("local"):
        message = f"{planned.text} needs --master standalone: on {planned.master} tasks run in the driver"
        raise planned.error(message, "target")
    if planned.spec.follows or planned.phase is None or planned.phase.where == "executor":
        return
    valid = [phase.name for phase, _ in phases_of(planned.shape) if phase.where == "executor"]
    message = f"{planned.text} needs a point of a task, and {planned.stopped}"
    raise planned.error(f"{message}: valid: {', '.join(valid)}", "target")


def _check_broker(planned: _PlannedAction) -> None:
    """There may be several brokers: the one that is parked is meant, or one that is named."""
    which = chosen(planned.action)
    role, of = (None, None) if which is None else (which.role, which.of)
    if role in BY_NUMBER[planned.brokers :]:
        there = f"there is no {which}: --brokers is {planned.brokers} here"
        raise planned.error(there, "arguments", "which")
    if role == FOLLOWERS and planned.brokers == 1:
        there = f"which={role} needs more than one broker: --brokers is 1 here"
        raise planned.error(there, "arguments", "which")
    if role == GROUP_COORDINATOR and of is None and not (planned.phase and _names_group(planned.phase)):
        naming = [phase.name for phase, _ in phases_of(planned.shape) if _names_group(phase)]
        known = f"valid: {', '.join(naming)}" if naming else f"{_sink(planned.shape)} has none"
        message = f"{which} needs a point that names a group, or its name ({role}(NAME)): {known}"
        raise planned.error(message, "arguments", "which")
    if which or planned.spec.follows or (planned.phase and planned.phase.where == "broker"):
        return
    valid = [phase.name for phase, _ in phases_of(planned.shape) if phase.where == "broker"]
    names = f"valid: {', '.join(valid)}" if valid else f"{_sink(planned.shape)} has none"
    wanted = f"{planned.text} needs which=, or a point that stops a broker"
    raise planned.error(f"{wanted}: {names}", "target")


def _check_itself(planned: _PlannedAction) -> None:
    """A broker would have to be started again, which is for whoever kills a broker."""
    if planned.phase is None:
        raise planned.error(f"{planned.text} needs a point: at(...) stops no process", "target")
    if planned.phase.where == "broker":
        raise planned.error(f"{planned.stopped}: write {planned.action.name}(broker)", "target")


def _names_group(phase: Phase) -> bool:
    return any(selector.name == "group" for selector in phase.selectors)


def _check_manifest(planned: _PlannedAction) -> None:
    if not (planned.shape.file or planned.shape.unknown):
        raise planned.error(f"{planned.text} needs Spark's file sink: {_sink(planned.shape)} is another one", "target")


def _check_server(planned: _PlannedAction) -> None:
    """A server that the sink does not use is not started, or another trial's."""
    services = planned.shape.services
    if services is None or planned.action.target in services:
        return
    known = f"the SERVICES of {_sink(planned.shape)} are {listed(sorted(services)) or 'none'}"
    message = f"{planned.text} needs a sink that uses {planned.action.target}: {known}"
    raise planned.error(message, "target")


def _check_worker(planned: _PlannedAction) -> None:
    """A Python worker is at work only while the rows of a Python data source pass through it."""
    python_in_tasks = planned.shape.python_source or planned.shape.unknown
    valid = [phase for phase, _ in phases_of(planned.shape) if phase.serves_worker and python_in_tasks]
    if planned.spec.follows or planned.phase in valid:
        return
    wanted = f"{planned.text} needs a point at which a Python worker serves the parked task"
    names = ", ".join(phase.name for phase in valid) or f"{_sink(planned.shape)} has none"
    raise planned.error(f"{wanted}: {'valid: ' if valid else ''}{names}", "target")
