"""What a phase and an action declare of themselves: the words of the plan language come from these declarations.

A family of phases is a file in ``phases/`` with a tuple ``PHASES`` and, for a JVM, its ``RULES``; an action is a file
in ``actions/`` with an ``ACTION``. :mod:`.catalogue` finds them by listing the two packages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ..plans import Action, Edge, Value
from ..requirements import Requirement
from .capabilities import Scene
from .protocols import PROTOCOLS

ProcessKind = Literal["driver", "executor", "broker", "python", "connection", "files"]
Sinks = Literal[
    "every",
    "v2",
    "aborting",
    "rows",
    "manifest",
    "kafka",
    "kafka-transactions",
    "python",
    "stateful",
    "services",
    "own services",
    "files",
]
Execution = Literal["micro-batch", "async progress", "real-time", "continuous"]
Kind = Literal["number", "text", "duration", "class", "flag"]

PROCESS_KINDS: dict[ProcessKind, str] = {
    "driver": "driver JVM",
    "executor": "executor JVM",
    "broker": "broker",
    "python": "Python",
    "connection": "connection to a service",
    "files": "process that changes a file",
}
"""The process whose thread is stopped at a phase; ``python`` is the sink's own code, on the driver's machine and in
tasks. A connection is stopped by the proxy that it passes: the process at its other end waits for the answer. ``files``
is any process of the driver's machine, which the system stops."""

SERVERS: tuple[str, ...] = tuple(sorted(set(PROTOCOLS) - {"kafka"}))
"""The servers of targets, by the names of their services: Kafka's are the brokers."""

NODE = "node"
"""The target that is a machine, which containers are; on this machine there is one for all."""

SPARK_TARGETS = ("executor", "worker", NODE)
"""Targets whose tasks Spark attempts again."""

ITSELF = "self"
"""The target that is the process whose thread is stopped at the point."""

EVERYWHERE: tuple[ProcessKind, ...] = tuple(PROCESS_KINDS)

ENVIRONMENTS = ("local", "docker")
"""A thread can be stopped at every phase in each of them; some actions need a network between machines."""

SINKS: dict[Sinks, str] = {
    "every": "every sink",
    "v2": "V2 sinks",
    "aborting": "V2 sinks, and Spark's file sink",
    "rows": "V2 sinks, Spark's file sink, and foreachBatch's function where it uses df.write",
    "manifest": "Spark's file sink",
    "kafka": "sinks that write to Kafka",
    "kafka-transactions": "sinks with Kafka transactions",
    "python": "sinks whose Python code runs in a batch",
    "stateful": "jobs that keep state",
    "own services": "sinks that speak to a service of the user's own (--proxy)",
    "services": "sinks whose target is a service that a proxy can pass on to",
    "files": "sinks that write files",
}


EXECUTIONS: dict[Execution, str] = {
    "micro-batch": "a query that runs micro-batches",
    "async progress": "a query with asynchronous progress tracking",
    "real-time": "a query in real-time mode",
    "continuous": "a continuous query",
}
"""How Spark runs a query, by its trigger: MicroBatchExecution, AsyncProgressTrackingMicroBatchExecution,
MicroBatchExecution with tasks that read for as long as the batch lasts, ContinuousExecution."""

OF_BATCHES: tuple[Execution, ...] = ("micro-batch", "async progress", "real-time")


@dataclass(frozen=True)
class Parameter:
    """A selector of a phase (``batch=1``) or an argument of an action (``after=2s``).

    ``kind`` says how its value is written: a whole number of at least ``minimum``, text (bare or quoted; one of
    ``choices`` if there are any, those of ``named`` also with a name in parentheses, of which it says what that is; and
    as a whole what the regular expression ``pattern`` says), a duration (``300ms``, ``2s``, ``1.5s``, ``2m``; in
    seconds as a float once read), the dotted name of a Python class, or ``true`` or ``false``. ``default`` holds where
    it is left out; ``sample`` is a value that examples show. An argument may be given only where a thread of
    ``stopped_in`` is stopped; ``elsewhere`` ends the sentence that refuses it ("..., where ..."). ``choices_in`` has
    all the values that it takes in processes of a kind. It may be given only with one of ``targets``, if there are any,
    and only if ``until`` follows where it goes ``with_until``; ``needs_files``: changes of files have to be reported
    for it; ``without_edge``: only at a point that has none.
    """

    name: str
    kind: Kind
    meaning: str
    minimum: int = 0
    choices: tuple[str, ...] = ()
    named: Mapping[str, str] = field(default_factory=dict, hash=False)
    required: bool = False
    default: Value | None = None
    stopped_in: tuple[ProcessKind, ...] = EVERYWHERE
    elsewhere: str = ""
    choices_in: Mapping[ProcessKind, tuple[str, ...]] = field(default_factory=dict, hash=False)
    targets: tuple[str, ...] = ()
    with_until: bool = False
    needs_files: bool = False
    pattern: str = ""
    sample: str = ""
    without_edge: bool = False


@dataclass(frozen=True)
class Place:
    """What a phase names in brackets behind its name: ``my_sink.py:42`` of ``line[my_sink.py:42]``.

    ``selectors`` are the names of what is written there, with ``separator`` in between; ``meaning`` says what that is.
    """

    selectors: tuple[str, ...]
    meaning: str
    sample: str
    separator: str = ":"


@dataclass(frozen=True)
class Phase:
    """A named step of the commit protocol.

    ``edges`` is empty for a line. ``selectors`` are in the order in which they are printed; those of its ``place``, if
    it has one, come first and are written in brackets of their own. ``two_phase`` is the step's name in the words of
    two-phase commit, ``source`` the class and method whose call it is. ``step`` orders the catalogue along the
    protocol. ``traced`` are the sinks whose traces have it (None: only a plan that names it has it reported).
    ``executions`` have it, except for the edges that they ``lack``. It is met ``also_in`` other processes than those
    ``where`` it mostly is. ``serves_worker``: a Python worker serves
    the task that is parked here, if the sink has Python code in its tasks. ``sweep`` are the actions by which a
    certification strikes here.
    """

    name: str
    edges: tuple[Edge, ...]
    selectors: tuple[Parameter, ...]
    where: ProcessKind
    sinks: Sinks
    meaning: str
    two_phase: str
    source: str
    step: int
    traced: Sinks | None = "every"
    serves_worker: bool = False
    sweep: tuple[Action, ...] = ()
    executions: tuple[Execution, ...] = OF_BATCHES
    lack: tuple[tuple[Execution, Edge], ...] = ()
    place: Place | None = None
    also_in: tuple[ProcessKind, ...] = ()

    @property
    def met_in(self) -> tuple[ProcessKind, ...]:
        """Every kind of process that reports it."""
        return (self.where, *self.also_in)

    @property
    def example(self) -> str:
        """The phase as it is written, with its place if it has one."""
        return f"{self.name}[{self.place.sample}]" if self.place else self.name

    def edges_in(self, execution: Execution) -> tuple[Edge, ...]:
        """Those that a query which Spark runs so goes through."""
        return tuple(edge for edge in self.edges if (execution, edge) not in self.lack)


Effect = Callable[[Action, Scene], str]
"""Does an action or a part of it; returns in a few words what was done once that is confirmed, raises if it failed."""


@dataclass(frozen=True)
class ActionSpec:
    """What can be done while a thread is stopped at a point, how, and what it must leave behind.

    ``act`` does it. ``targets`` is empty for an action on the stopped thread itself. ``positional`` names the argument
    that may be written without its name. Of ``exactly_one``, which may name ``until`` besides arguments, one must be
    given. A thread may be stopped for it in a process of ``stopped_in``; ``moment`` says whether it can be done
    ``at(3s)``, where no thread is stopped. ``network`` says that it acts on the network between machines, which only
    some environments have.

    ``requires``: what must be in the journal afterwards; of those for the target, the first that holds at the step
    where the action struck. Every target needs one for every step: what leaves no trace proves nothing.
    ``requires_if_killed``: what it must leave behind instead, if it has an ``until`` and the next action of its fault
    kills its target, which then never goes on; so must that kill then.
    ``follows`` is the action on the same target that must come before it: in the same fault if ``same_fault``, else
    anywhere in the plan; one that ``counts_as`` it will do. One that ``amends`` what it follows only sets how that goes
    on, and has no effect of its own to require; ``restart_delay`` names the argument that delays the restart.

    With ``until POINT``, or if it ``lets_go``, the action has two parts: ``act`` while the thread is stopped, then
    the thread goes on, and ``end`` at that point, or at once; ``longest`` names the argument that limits how long the
    point is waited for. ``times`` names the argument that says at how many reports of the point in a row it is done.
    One that ``keeps_thread`` lets the stopped thread go on behind the ``end`` only; ``keeps_requests_of`` names targets
    whose stopped request goes out behind the ``end`` only. ``runs_on``:
    what it ends may get further than the point before it is dead, so that what is required is that of its last report.

    One that ``answers`` does so in the service's place, by its argument ``error``: of what it stops at, and of the
    service, such an answer must be known.

    ``through_proxy``: it acts on the job's connections to the services of its targets, which then pass a proxy.

    ``self_inflicted``: on these targets (None: the stopped thread) a driver may fail by the action, and is excused.
    ``takes_service_away``: on these targets clients lose a broker, or a target's server, for a while.

    ``read_by_the_next``: what is changed is read only by the successor of this target, so that it has to be killed,
    or taken for dead, behind the action in its fault; what its death must leave behind then is what this action
    requires.

    Only queries that Spark runs by ``executions`` can have it.
    """

    name: str
    meaning: str
    example: str
    act: Effect
    requires: tuple[Requirement, ...] = ()
    requires_if_killed: tuple[Requirement, ...] = ()
    targets: tuple[str, ...] = ()
    arguments: tuple[Parameter, ...] = ()
    positional: str | None = None
    exactly_one: tuple[str, ...] = ()
    stopped_in: tuple[ProcessKind, ...] = EVERYWHERE
    moment: bool = True
    follows: str | None = None
    same_fault: bool = False
    counts_as: str | None = None
    amends: bool = False
    restart_delay: str | None = None
    end: Effect | None = None
    longest: str | None = None
    times: str | None = None
    lets_go: bool = False
    keeps_thread: bool = False
    keeps_requests_of: tuple[str, ...] = ()
    runs_on: bool = False
    network: bool = False
    answers: bool = False
    through_proxy: bool = False
    self_inflicted: tuple[str | None, ...] = ()
    takes_service_away: tuple[str, ...] = ()
    read_by_the_next: str | None = None
    executions: tuple[Execution, ...] = tuple(EXECUTIONS)

    @property
    def takes_until(self) -> bool:
        """Whether ``until POINT`` may follow the action."""
        return "until" in self.exactly_one

    def required_of(self, target: str | None, *, killed: bool = False) -> tuple[Requirement, ...]:
        """What the action on ``target`` must leave behind, by steps; ``killed``: where that is killed next."""
        declared = self.requires_if_killed if killed else self.requires
        return tuple(one for one in declared if not one.targets or target in one.targets)

    def value(self, action: Action, name: str) -> Value | None:
        """An argument as written, else its default. Raises KeyError for a name that the action does not take."""
        declared = {parameter.name: parameter for parameter in self.arguments}
        return action.arguments.get(name, declared[name].default)

    def seconds(self, action: Action, name: str) -> float:
        """A duration among the arguments, in seconds."""
        return float(self.value(action, name) or 0.0)


def check_spec(spec: ActionSpec) -> ActionSpec:
    """The declaration, if it can be used. Raises TypeError, one line, which names what it lacks."""
    if (spec.takes_until or spec.lets_go) and spec.end is None:
        raise TypeError(f"action {spec.name} goes on after the stopped thread does, and declares no end")
    if spec.amends and not (spec.follows and spec.same_fault):
        raise TypeError(f"action {spec.name} amends another one of its fault, and declares none that it follows there")
    for target in () if spec.amends else spec.targets or (None,):
        if not any(one.everywhere for one in spec.required_of(target)):
            on = f" on {target}" if target else ""
            raise TypeError(f"action {spec.name}{on} declares no requirement that holds at every step: see requires")
    return spec


ALWAYS_REPORTED: frozenset[tuple[str, Edge]] = frozenset(
    {
        ("query.start", "before"),
        ("sink.write", "before"),
        ("sink.write", "after"),
        ("batch.commit", "before"),
        ("batch.commit", "after"),
    }
)
"""Points of the driver that are reported in every trial: they are the evidence of a replay."""
