"""Check a plan against a sink and a master before anything starts, and say what has to be loaded for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...plans import Action, Fault, Plan, Point
from ..actions._brokers import BY_NUMBER
from ..catalogue import phase_named
from ..declarations import ALWAYS_REPORTED
from ..language import LocatedPlan, format_plan, parse_located
from ..settings import MASTER, settings_of
from ..shape import SinkShape
from .actions import PlannedAction, check_action
from .needs import (
    Files,
    Line,
    Method,
    PhasePoint,
    arguments_needing_files,
    batches_of_lines,
    executor_points,
    files_reported,
    lines_reported,
    of_tasks,
    points_named_in,
    points_of,
    points_traced,
    rows_reported,
    services_proxied,
    targets_of,
)
from .points import check_batch, check_phase, check_service


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
    def line_batches(self) -> Mapping[Line, frozenset[int]]:
        """The lines that the plan asks for in some batches only, with these."""
        return batches_of_lines(self.plan)

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
    cluster: bool = True,
) -> ResolvedPlan:
    """The plan with all that it needs, if this sink can have its phases and this master its actions.

    ``master`` is ``local[n]`` or ``standalone``, unless the plan sets it, which takes a ``cluster``. With ``trace``
    every point of the driver, the executors and the sink's lines is reported besides. The environment has so many
    ``brokers``; ``network``: its machines have a network between them; ``no_files``: why changes of files cannot be
    stopped, if so. ``batches`` of the job, unless the plan sets another number; None where it is not known. Raises
    PlanError, at the place in its text: that of a LocatedPlan, else the canonical text.
    """
    located = plan if isinstance(plan, LocatedPlan) else parse_located(format_plan(plan))
    _check_brokers(located, brokers)
    master = _master(located, cluster) or master
    _check_points(located, shape, batches)
    if no_files:
        _check_needs_no_files(located, no_files)
    for index, fault in enumerate(located.plan.faults):
        for number, action in enumerate(fault.actions):
            check_action(PlannedAction(located, shape, master, network, brokers, fault, action, index, number))
    return _with_needs(_with_files(located.plan, shape), shape, master, trace, files_traced=trace and not no_files)


def _with_needs(plan: Plan, shape: SinkShape, master: str, trace: bool, files_traced: bool) -> ResolvedPlan:
    points, unsynced = [point for point, _ in points_of(plan)], bool(arguments_needing_files(plan))
    return ResolvedPlan(
        plan=plan,
        shape=shape,
        master=master,
        driver_points=points_named_in("driver", points) | ALWAYS_REPORTED | points_traced("driver", shape, trace),
        executor_points=executor_points(plan, points, shape, trace),
        broker_points=points_named_in("broker", points),
        rows=rows_reported(points, trace),
        lines=lines_reported(points, shape, trace),
        calls=frozenset(str(point.where["function"]) for point in points if point.phase == "call"),
        methods=frozenset(
            (str(point.where["class"]), str(point.where["method"])) for point in points if point.phase == "jvm"
        ),
        workers=of_tasks(points) or "worker" in targets_of(plan),
        proxied=services_proxied(points, plan, shape, trace),
        files=files_reported(points, unsynced or (files_traced and shape.writes_files)),
        unsynced=unsynced,
    )


def _check_points(located: LocatedPlan, shape: SinkShape, batches: int | None) -> None:
    for point, path in points_of(located.plan):
        check_phase(located, shape, point, path)
        check_batch(located, batches, point, path)
        check_service(located, shape, point, path)


def _check_needs_no_files(located: LocatedPlan, why: str) -> None:
    """``why`` changes of files cannot be stopped."""
    for point, path in points_of(located.plan):
        if phase_named(point.phase).where == "files":
            raise located.error(f"{point.phase} is not possible here: {why}", (*path, "phase"))
    for index, number, name in arguments_needing_files(located.plan):
        message = f"{name} is not possible here: {why}"
        raise located.error(message, (index, "actions", number, "arguments", name))


def _check_brokers(located: LocatedPlan, brokers: int) -> None:
    settings, there = settings_of(located.plan.settings), f"there {'is' if brokers == 1 else 'are'} {brokers}"
    option = located.named("brokers")
    if settings.brokers not in (None, brokers):
        message = f"the plan needs {settings.brokers} brokers, and {there}: {option} {settings.brokers}"
        raise located.error(message, ("settings", "brokers"))
    if settings.copies is not None and settings.copies > brokers:
        message = f"a topic cannot have {settings.copies} copies, one on each broker: {there}"
        raise located.error(f"{message}: {option} {settings.copies}", ("settings", "copies"))


def _master(located: LocatedPlan, cluster: bool) -> str | None:
    """The plan's own."""
    master = settings_of(located.plan.settings).master
    if master and not cluster:
        message = f"there is no cluster here: {located.named('master')} {master}"
        raise located.error(message, ("settings", MASTER))
    return master


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
