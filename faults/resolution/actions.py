"""Checks the actions of a plan against a sink, a master and an environment, where the fault stops a thread."""

from __future__ import annotations

from dataclasses import dataclass

from ...plans import NUMBER, Action, Fault, Moment, Point
from ..actions._brokers import BY_NUMBER, GROUP_COORDINATOR, chosen
from ..capabilities import FOLLOWERS
from ..catalogue import action_named, phase_named, phases_of
from ..checkpoints import MANIFEST
from ..declarations import (
    EXECUTIONS,
    ITSELF,
    NODE,
    PROCESS_KINDS,
    SERVERS,
    ActionSpec,
    Phase,
)
from ..errors import PlanError, listed, nearest
from ..language import LocatedPlan, Path
from ..protocols import PROTOCOLS, Protocol, protocol_of
from ..shape import SinkShape
from ..values import print_value
from .needs import OF_A_TASK, is_lookup, of_a_task
from .points import check_used, check_way, services_at, sink_name


@dataclass(frozen=True)
class PlannedAction:
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


def check_action(planned: PlannedAction) -> None:
    _check_network(planned)
    _check_connections(planned)
    _check_process(planned)
    _check_execution(planned)
    _check_order(planned)
    _check_reader(planned)
    _check_answer(planned)
    _check_end(planned)
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


def _check_arguments(planned: PlannedAction) -> None:
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
            name = f"the number in {planned.action.numbered_target}" if parameter.name == NUMBER else parameter.name
            message = f"{name} of {planned.spec.name} is for {listed(parameter.targets)} only"
            raise planned.error(message, "arguments", parameter.name)
        choices = parameter.choices_in.get(planned.phase.where, ()) if planned.phase else ()
        if given and choices and planned.action.arguments[parameter.name] not in choices:
            message = f"{planned.stopped}, where {parameter.name} is {listed(choices)}"
            raise planned.error(message, "arguments", parameter.name)


def _check_network(planned: PlannedAction) -> None:
    if (planned.spec.network or planned.action.target == NODE) and not planned.network:
        needed = f"{planned.located.named('env')} docker"
        raise planned.error(f"{planned.text} needs {needed}: in the local environment all machines are one", "name")


def _check_connections(planned: PlannedAction) -> None:
    """Whether the job has connections for the action that pass a proxy."""
    if not planned.spec.through_proxy:
        return
    path: Path = (planned.index, "actions", planned.number)
    check_way(planned.located, planned.text, (*path, "name"))
    service = planned.action.arguments.get("service")
    check_used(planned.located, planned.shape, service, (*path, "arguments", "service"))
    if not planned.shape.spoken_to:
        known = f"it uses no service; {planned.located.named('proxy')} NAME=HOST:PORT names one of your own"
        raise planned.error(
            f"{planned.text} needs a service that {sink_name(planned.shape)} speaks to: {known}", "name"
        )


def _check_process(planned: PlannedAction) -> None:
    """Whether the action can be done where the fault stops a thread, or at a moment, where it stops none."""
    if planned.phase is None and not planned.spec.moment:
        raise planned.error(f"{planned.text} acts on a stopped thread, and at(...) stops none: name a point", "name")
    if planned.phase and planned.phase.where not in planned.spec.stopped_in:
        valid = listed(PROCESS_KINDS[kind] for kind in planned.spec.stopped_in)
        raise planned.error(f"{planned.stopped}, where {planned.action.name} cannot act: {valid}", "name")


def _check_execution(planned: PlannedAction) -> None:
    """Whether a query that Spark runs so can have the action."""
    if planned.shape.execution not in planned.spec.executions:
        having = listed(EXECUTIONS[one] for one in planned.spec.executions)
        raise planned.error(f"{planned.text} needs {having}: this is {EXECUTIONS[planned.shape.execution]}", "name")


def _check_order(planned: PlannedAction) -> None:
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


def _is_like(action: Action, planned: PlannedAction) -> bool:
    """Whether ``action`` is one that the planned one may follow."""
    names = (action.name, action_named(action.name).counts_as)
    return planned.spec.follows in names and action.target == planned.action.target


def _check_reader(planned: PlannedAction) -> None:
    """Whether another one takes the place of who has read what is changed, and reads it."""
    reader = planned.spec.read_by_the_next
    later = [action for action in planned.fault.actions[planned.number + 1 :] if action.target == reader]
    if reader and not any(action.name == "kill" or action.until for action in later):
        wanted = f"{planned.text} is read by the next {reader} only: put kill({reader}) behind it in its fault"
        raise planned.error(f"{wanted}, as in: {planned.spec.example}", "name")


def _check_answer(planned: PlannedAction) -> None:
    """Whether an answer with this error can be made up for what the fault stops."""
    at = planned.fault.at
    if not planned.spec.answers or isinstance(at, Moment):
        return
    kind, error = at.where.get("kind"), planned.action.arguments["error"]
    protocols = _protocols(planned, at)
    possible = {name: one for name, one in protocols.items() if _can_answer(one, at)}
    if not possible:
        of_each = [one.lookups if is_lookup(at) else one.refusable for one in protocols.values()]
        kinds = dict.fromkeys(one for some in of_each for one in some)
        message = f"{planned.text} needs a kind of request whose answer can be made up: one of "
        raise planned.error(message + listed(f"kind={name}" for name in kinds), "name")
    protocol, *others = possible.values()
    if any(one is not protocol for one in others):
        named = listed(f"service={name}" for name in possible)
        raise planned.error(f"{planned.text} at {kind or 'any request'} may be one of {named}: name it", "name")
    if error not in protocol.errors:
        message = f"no error is called {print_value(error)}: {nearest(str(error), protocol.errors)}"
        raise planned.error(message, "arguments", "error")
    if protocol.refuses_any and at.edge == "after":
        message = f"{planned.text}: what is done cannot fail any more: stop it on its way out, at request:before"
        raise planned.error(message, "name")


def _protocols(planned: PlannedAction, at: Point) -> dict[str, Protocol]:
    """By the services that the point may be at."""
    found = {service: protocol_of(service) for service in services_at(at, planned.shape)}
    if not any(protocol.errors for protocol in found.values()):
        speaking = listed([*(name for name, protocol in PROTOCOLS.items() if protocol.errors), "HTTP"])
        message = f"an answer can be made up for {speaking} only: name the service, as in {planned.spec.example}"
        raise planned.error(message, "name")
    return found


def _can_answer(protocol: Protocol, at: Point) -> bool:
    kind = at.where.get("kind")
    if is_lookup(at):
        return kind in protocol.lookups
    return protocol.can_refuse(kind) and (kind is None or protocol.may_have(str(kind)))


def _check_end(planned: PlannedAction) -> None:
    """A job that waits for a service is not idle, however long: what keeps the service away has an end of its own."""
    action, spec = planned.action, planned.spec
    waits = action.until is not None and action.target in spec.takes_service_away
    if waits and spec.longest and spec.longest not in action.arguments:
        message = f"a {action.target} that waits for a point that never comes keeps the job for ever"
        mend = f"say when it goes on at the latest, as in {spec.name}({action.target}, {spec.longest}=30s) until ..."
        raise planned.error(f"{message}: {mend}", "until")


def _check_executor(planned: PlannedAction) -> None:
    """Executors are parked at the points of tasks, and do what a task asks for and changes; at a moment any executor of
    the job will do, and one that is named by its number is found at any point."""
    if planned.master.startswith("local"):
        needed = f"{planned.located.named('master')} standalone"
        message = f"{planned.text} needs {needed}: on {planned.master} tasks run in the driver"
        raise planned.error(message, "target")
    named = NUMBER in planned.action.arguments
    if named or planned.spec.follows or planned.phase is None or planned.phase.where == "executor":
        return
    if isinstance(planned.fault.at, Point) and of_a_task(planned.fault.at):
        return
    valid = [phase.name for phase, _ in phases_of(planned.shape) if phase.where == "executor"]
    message = f"{planned.text} needs a point of a task, or a number (executor[0]), and {planned.stopped}"
    others = f"or any with {listed(OF_A_TASK)}"
    raise planned.error(f"{message}: valid: {', '.join(valid)}, {others}", "target")


def _check_broker(planned: PlannedAction) -> None:
    """There may be several brokers: the one that is parked is meant, or one that is named."""
    which = chosen(planned.action)
    role, of = (None, None) if which is None else (which.role, which.of)
    if role in BY_NUMBER[planned.brokers :]:
        there = f"there is no {which}: {planned.located.named('brokers')} is {planned.brokers} here"
        raise planned.error(there, "arguments", "which")
    if role == FOLLOWERS and planned.brokers == 1:
        there = f"which={role} needs more than one broker: {planned.located.named('brokers')} is 1 here"
        raise planned.error(there, "arguments", "which")
    if role == GROUP_COORDINATOR and of is None and not (planned.phase and _names_group(planned.phase)):
        naming = [phase.name for phase, _ in phases_of(planned.shape) if _names_group(phase)]
        known = f"valid: {', '.join(naming)}" if naming else f"{sink_name(planned.shape)} has none"
        message = f"{which} needs a point that names a group, or its name ({role}(NAME)): {known}"
        raise planned.error(message, "arguments", "which")
    if which or planned.spec.follows or (planned.phase and planned.phase.where == "broker"):
        return
    valid = [phase.name for phase, _ in phases_of(planned.shape) if phase.where == "broker"]
    names = f"valid: {', '.join(valid)}" if valid else f"{sink_name(planned.shape)} has none"
    wanted = f"{planned.text} needs which=, or a point that stops a broker"
    raise planned.error(f"{wanted}: {names}", "target")


def _check_itself(planned: PlannedAction) -> None:
    """A broker would have to be started again, which is for whoever kills a broker."""
    if planned.phase is None:
        raise planned.error(f"{planned.text} needs a point: at(...) stops no process", "target")
    if planned.phase.where == "broker":
        raise planned.error(f"{planned.stopped}: write {planned.action.name}(broker)", "target")


def _names_group(phase: Phase) -> bool:
    return any(selector.name == "group" for selector in phase.selectors)


def _check_manifest(planned: PlannedAction) -> None:
    if not (planned.shape.file or planned.shape.unknown):
        raise planned.error(
            f"{planned.text} needs Spark's file sink: {sink_name(planned.shape)} is another one", "target"
        )


def _check_server(planned: PlannedAction) -> None:
    """A server that the sink does not use is not started, or another trial's."""
    services = planned.shape.services
    if services is None or planned.action.target in services:
        return
    known = f"the SERVICES of {sink_name(planned.shape)} are {listed(sorted(services)) or 'none'}"
    message = f"{planned.text} needs a sink that uses {planned.action.target}: {known}"
    raise planned.error(message, "target")


def _check_worker(planned: PlannedAction) -> None:
    """A Python worker is at work only while the rows of a Python data source pass through it."""
    python_in_tasks = planned.shape.python_source or planned.shape.unknown
    valid = [phase for phase, _ in phases_of(planned.shape) if phase.serves_worker and python_in_tasks]
    if planned.spec.follows or planned.phase in valid:
        return
    wanted = f"{planned.text} needs a point at which a Python worker serves the parked task"
    names = ", ".join(phase.name for phase in valid) or f"{sink_name(planned.shape)} has none"
    raise planned.error(f"{wanted}: {'valid: ' if valid else ''}{names}", "target")
