"""A trial as it is asked for, checked against all that it asks for; starts nothing.

``named`` says what messages call what was asked for: the option of the command line, if they are told of nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..assertions import Guarantee, Workload
from ..faults import LocatedPlan, Plan, PlanError, ResolvedPlan, SinkShape, parse, parse_located, resolve, sinks_for
from ..faults.settings import NUMBERS, check_property, settings_of
from ..naming import Named, as_option
from .environment_options import EnvironmentOptions, abilities, where
from .errors import UsageError
from .jobs import Job, check_fit, check_job, find_job, reference_jobs, shape_with, with_job
from .sinks import brokers_wanted, find_sink
from .triggers import check_execution

MOST_RECORDS = 1_000_000
"""Of an input, those of aborted transactions included. So many take a minute to compute, before anything starts."""


@dataclass(frozen=True)
class Request:
    """A trial as it is asked for. ``claim`` None is the sink's own; ``readable``: see :class:`TrialSpec`."""

    sink: str
    plan: str = ""
    claim: Guarantee | None = None
    workload: Workload = field(default_factory=Workload)
    trace: bool = False
    every_line: bool = False
    conf: Mapping[str, str] = field(default_factory=dict)
    jars: Sequence[str] = ()
    deadline: float = 90.0
    settle_deadline: float = 15.0
    directory: Path | None = None
    watch: bool = True
    readable: bool = False
    job: str | None = None
    """the path of the job's file; None is jobs/passthrough.py"""
    expect: str | None = None
    """the path of the job's expectation; None is the .sql file next to it"""
    trigger: str | None = None
    """as the job's --trigger has it; None: the job is not told"""
    keep: bool = False
    """whether the files of target.directory stay in the run directory"""
    own_services: Mapping[str, str] = field(default_factory=dict)
    """HOST:PORT of the user's own, by the names by which the sink finds them in target.proxy"""


def check_request(request: Request, options: EnvironmentOptions, named: Named = as_option) -> None:
    """All that can be refused of a trial before anything is started for it. Raises UsageError."""
    job, sink = find_job(request.job, request.expect, named), find_sink(request.sink)
    plan, resolved = resolve_plan(
        request.plan,
        job,
        sink,
        options,
        trigger=request.trigger,
        own_services=request.own_services,
        batches=request.workload.batches,
        named=named,
    )
    asked = as_set(request, plan)
    check_execution(request.trigger, resolved.shape, asked.workload.partitions, resolved.master, named)
    check_job(job, asked.workload)
    check_fit(job, sink)


def check_without_sink(request: Request, options: EnvironmentOptions) -> None:
    """The same of a plan whose sink is not known yet: what no sink can have is refused. Raises UsageError."""
    job, options = find_job(request.job, request.expect), with_brokers(options, request.plan)
    if options.brokers is None:  # a sink may want as many as there can be (BROKERS)
        options = replace(options, brokers=NUMBERS["brokers"])
    located = _located(request.plan)
    asked = as_set(request, located.plan)
    shapes = [with_job(shape, job, request.trigger) for shape in sinks_for(located.plan, request.own_services)]
    refused = [_refusal(located, job, shape, options, request.workload.batches) for shape in shapes]
    if all(refused):
        raise UsageError(str(refused[0]))
    check_execution(request.trigger, shapes[0], asked.workload.partitions, where(options)[1])
    check_job(job, asked.workload)


def _refusal(located: LocatedPlan, job: Job, shape: SinkShape, options: EnvironmentOptions, batches: int) -> str | None:
    """Why a sink of this shape cannot have the plan; None if it can."""
    try:
        _resolved(located, job, shape, options, batches)
    except PlanError as error:
        return str(error)
    return None


def resolve_plan(
    text: str,
    job: Job,
    sink: Path,
    options: EnvironmentOptions,
    *,
    trace: bool = False,
    trigger: str | None = None,
    own_services: Collection[str] = (),
    batches: int | None = None,
    named: Named = as_option,
) -> tuple[Plan, ResolvedPlan]:
    """Parse a plan and check it against job, sink, trigger, the user's own services and environment; starts nothing.
    ``batches`` of the input; None where none that a plan names is refused. Raises UsageError."""
    located = _located(text, named)
    shape = shape_with(job, sink, trigger, own_services, named)
    try:
        resolved = _resolved(located, job, shape, options, batches, trace)
    except PlanError as error:
        raise UsageError(str(error)) from error
    return resolved.plan, resolved


def _located(text: str, named: Named = as_option) -> LocatedPlan:
    try:
        return parse_located(text, named)
    except PlanError as error:
        raise UsageError(str(error)) from error


def _resolved(
    located: LocatedPlan,
    job: Job,
    shape: SinkShape,
    options: EnvironmentOptions,
    batches: int | None,
    trace: bool = False,
) -> ResolvedPlan:
    """Raises PlanError."""
    _, master = where(options)
    known = batches if _cuts_as_planned(job, shape) else None
    return resolve(located, shape, master, **abilities(options), trace=trace, batches=known)


def _cuts_as_planned(job: Job, shape: SinkShape) -> bool:
    """Whether the job surely has the batches of its input, and no more: one that keeps state has some without rows."""
    return job.path in reference_jobs() and shape.execution == "micro-batch" and not shape.stateful


def as_set(request: Request, plan: Plan) -> Request:
    """The request with what the plan sets, which goes before what was asked for. Raises UsageError for an input that is
    too large, and for a property of Spark's that is the environment's own."""
    settings = settings_of(plan.settings)
    workload = replace(request.workload, **settings.workload)
    check_size(workload)
    check_properties(request.conf)
    return replace(request, workload=workload, conf={**request.conf, **settings.spark})


def check_size(workload: Workload) -> None:
    """Raises UsageError for an input that takes too long to compute."""
    records = workload.batches * workload.partitions * workload.window
    if records > MOST_RECORDS:
        raise UsageError(
            f"batches {workload.batches} with rows {workload.rows} and partitions {workload.partitions} make an input "
            f"of {records} records: give fewer, for at most {MOST_RECORDS}"
        )


def check_properties(names: Iterable[str], named: Named = as_option) -> None:
    """Raises UsageError for a property of Spark's that the environment has from elsewhere."""
    try:
        for name in names:
            check_property(name, named)
    except ValueError as error:
        raise UsageError(f"{named('conf')} {error}") from error


def with_brokers(options: EnvironmentOptions, text: str, sink: Path | None = None) -> EnvironmentOptions:
    """The options with as many brokers as the plan needs, else the sink (BROKERS), where nothing else is asked for.
    Raises UsageError."""
    try:
        wanted = settings_of(parse(text).settings).brokers
    except PlanError as error:
        raise UsageError(str(error)) from error
    if wanted is None and sink is not None:
        wanted = brokers_wanted(sink)
    if wanted is None or options.brokers is not None or options.attach is not None or options.env != "local":
        return options
    return replace(options, brokers=wanted)


def refusal(plan: Plan, shape: SinkShape, options: EnvironmentOptions) -> str | None:
    """Why this plan cannot be carried out with a sink of this shape in this environment; None if it can."""
    _, master = where(options)
    try:
        resolve(plan, shape, master, **abilities(options))
    except PlanError as error:
        return error.message
    return None
