"""What a sweep's space is computed from, for one sink in one environment."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ...faults import SERVERS, Plan, phases_of, required_steps
from ...faults.acts import acts_at
from ...faults.embedded import undone_at
from ...faults.failing import may_be_done_at, may_fail_at
from ...faults.handlers import errors_in, states_a_fact
from ...faults.numbers import numbers_in
from ...faults.statements import begins_at, calls_at, leaves_at
from ..environment_options import EnvironmentOptions
from ..errors import UsageError
from ..jobs import find_job, reference_jobs, shape_with
from ..request import Request, as_set, refusal
from ..session import Session
from ..sinks import find_sink, literals
from .points import STEPS_ONLY, Code, Question
from .repeats import crashes
from .requests import PHASE as REQUESTS
from .space import names_plans, needs_replay
from .trace import Event, Line
from .traced import REPLAY, Trace, traced
from .wanted import Wanted

TRIES = 2
"""Of a replay that is inconclusive: what it lacks is not swept."""


def replays(wanted: Wanted) -> bool:
    """Whether what a replay runs is asked for."""
    return wanted.profile not in STEPS_ONLY and needs_replay(wanted.points)


def replay_of(session: Session, request: Request, directory: Path, roles: Mapping[str, int]) -> Sequence[Event]:
    """The journal of a trial in which the batch of each role is replayed; of another one if it was inconclusive."""
    plan = crashes(roles.values())
    for _ in range(TRIES):
        judged, trace = traced(session, replace(request, plan=plan), directory, REPLAY)
        if judged.verdict != "inconclusive":
            break
    return trace.journal


def question_of(
    options: EnvironmentOptions,
    request: Request,
    wanted: Wanted,
    roles: Mapping[str, int],
    trace: Trace,
    replay: Sequence[Event] = (),
) -> Question:
    sink, job = find_sink(request.sink), find_job(request.job, request.expect)
    shape = shape_with(job, sink, request.trigger, request.own_services)

    def caught(lines: Sequence[Line], facts: bool) -> list[str]:
        """By ``except BaseException`` an Exception is, too: another one would hang the driver, since py4j lets it end
        the thread that the JVM waits for."""
        found = errors_in([(sink.parent / line.file, line.line) for line in lines], sink.parent)
        names = dict.fromkeys("Exception" if name == "BaseException" else name for name in found)
        return [name for name in names if states_a_fact(name, sink.parent) is facts]

    asked = {str(event.get("service")) for event in trace.journal if event.get("phase") == REQUESTS}

    def may_be_done(line: Line, error: str) -> bool:
        path = sink.parent / line.file
        undone = undone_at(path, line.line, error, sink.parent)
        return not undone and may_be_done_at(path, line.line, error, sink.parent, asked)

    return Question(
        trace=trace.journal,
        roles=roles,
        refusal=lambda plan: refusal(plan, shape, options) or _too_large(request, plan),
        replay=replay,
        profile=wanted.profile,
        phases=frozenset(phase.name for phase, _ in phases_of(shape)),
        required=required_steps(shape),
        code=Code(
            errors=lambda lines: caught(lines, False),
            facts=lambda lines: caught(lines, True),
            calls=lambda line: calls_at(sink.parent / line.file, line.line),
            acts=lambda line: acts_at(sink.parent / line.file, line.line, sink.parent),
            begins=lambda line: begins_at(sink.parent / line.file, line.line),
            numbers=_numbers(sink, trace.journal),
            may_fail=lambda line: may_fail_at(sink.parent / line.file, line.line, sink.parent),
            may_be_done=may_be_done,
            leaves=lambda line, nth: leaves_at(sink.parent / line.file, line.line, nth),
        ),
        durable=literals(sink).get("DURABLE") is True,
        known_failures=names_plans(wanted.points),
        batches=request.workload.batches if wanted.batch is None else None,
        reference_job=job.path in reference_jobs(),
        servers=[server for server in SERVERS if server in _services(shape.services, trace.journal)],
    )


def _numbers(sink: Path, trace: Sequence[Event]) -> frozenset[float]:
    """Those of the sink's file, and of the modules of which lines were executed."""
    files = {sink.name, *(str(event["file"]) for event in trace if event.get("phase") == "line")}
    return frozenset[float]().union(*(numbers_in(sink.parent / file) for file in files))


def _too_large(request: Request, plan: Plan) -> str | None:
    """Why the input that the plan asks for is not made."""
    try:
        as_set(request, plan)
    except UsageError as error:
        return str(error)
    return None


def _services(named: Collection[str] | None, trace: Sequence[Event]) -> Collection[str]:
    """Those that the sink names; where it computes them, those that were asked for something."""
    return {str(event.get("service")) for event in trace if event["event"] == "point"} if named is None else named
