"""A trial as it is asked for, and its plan, checked against all that it asks for; starts nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..assertions import Guarantee, Workload
from ..faults import Plan, PlanError, ResolvedPlan, SinkShape, parse, parse_located, resolve
from ..faults.settings import check_property, settings_of
from .environment_options import EnvironmentOptions, abilities, where
from .errors import UsageError
from .jobs import Job, reference_jobs, shape_with
from .sinks import brokers_wanted

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
) -> tuple[Plan, ResolvedPlan]:
    """Parse a plan and check it against job, sink, trigger, the user's own services and environment; starts nothing.
    ``batches`` of the input; None where none that a plan names is refused. Raises UsageError."""
    _, master = where(options)
    try:
        located = parse_located(text)
        shape = shape_with(job, sink, trigger, own_services)
        known = batches if _cuts_as_planned(job, shape) else None
        resolved = resolve(located, shape, master, **abilities(options), trace=trace, batches=known)
    except PlanError as error:
        raise UsageError(str(error)) from error
    return resolved.plan, resolved


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


def check_properties(names: Iterable[str], given_by: str = "--conf") -> None:
    """Raises UsageError for a property of Spark's that the environment has from elsewhere."""
    try:
        for name in names:
            check_property(name)
    except ValueError as error:
        raise UsageError(f"{given_by} {error}") from error


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
