"""``onceproof run``: one trial."""

from __future__ import annotations

import json as json_module
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from ...assertions import Outcome
from ...faults import NoSuchFailure, is_empty, known_failure
from ..certification.repeats import determinism_of, looks_into
from ..console.printing import say
from ..console.trial import print_trial
from ..environment_options import check_environment
from ..errors import BROKE, HELD, INCONCLUSIVE, Unavailable, UsageError, no_file, one_line
from ..releases import with_release
from ..request import Request, check_request, with_brokers
from ..run_directories import check_unused
from ..session import Session
from ..sinks import find_sink
from ..trial.record import trial_as_json, write_trial
from ..trial.spec import TrialResult
from .options import Claim, EnvironmentArguments, JobOptions, Json, Watch, WorkloadOptions, request_of
from .sessions import opened, told

EXIT = {Outcome.PASS: HELD, Outcome.FAIL: BROKE, Outcome.INCONCLUSIVE: INCONCLUSIVE}


def register(app: App) -> None:
    app.command(run)


def run(
    sink: Annotated[str, Parameter(help="a sink file, or the name of a built-in sink (onceproof sinks)")],
    *,
    fault: Annotated[
        tuple[str, ...], Parameter(negative=(), show_default=False, help="a fault of the plan; may be repeated")
    ] = (),
    plan: Annotated[
        str | None, Parameter(help="a file with the plan's text, or the name of a known failure (onceproof plans)")
    ] = None,
    claim: Claim = None,
    run_directory: Annotated[Path | None, Parameter(help="where to keep this run (new or empty)")] = None,
    watch: Watch = True,
    json: Json = False,
    environment: EnvironmentArguments = EnvironmentArguments(),  # noqa: B008
    workload: WorkloadOptions = WorkloadOptions(),  # noqa: B008
    job: JobOptions = JobOptions(),  # noqa: B008
) -> int:
    """Run one trial: the job with a sink, under a plan of faults, judged by what a reader sees.

    Exit code 0: the claim held; 1: it broke; 3: inconclusive.

    Examples:

        onceproof run --sink kafka_append --fault "sink.commit:after[batch=1] -> kill(driver)"

        onceproof run --sink my_sink.py --fault "sink.write:after[batch=1] -> kill(driver)" --json

        onceproof run --sink my_sink.py --plan zombie_driver

        onceproof run --sink kafka_transactional --master standalone \\
            --fault "task.commit:before[batch=1] -> kill(executor)"

        onceproof run --sink postgres_upsert --job my_job.py --expect my_job.sql
    """
    request = replace(
        request_of(sink, claim, watch, environment, workload, job), plan=_text_of(fault, plan), directory=run_directory
    )
    path = find_sink(sink)
    check_environment(environment.options())
    options = with_brokers(environment.options(), request.plan, path)
    check_request(request, options)
    if run_directory is not None:
        check_unused(run_directory)
    with opened(with_release(options, path, told)) as session:
        result = looked_into(session, request, session.trial(request))
        if json:
            say(json_module.dumps(trial_as_json(result), indent=2, ensure_ascii=False))
        else:
            print_trial(result)
    return EXIT[result.verdict.outcome]


def looked_into(session: Session, request: Request, result: TrialResult) -> TrialResult:
    """A trial that failed after a batch was handed over again, with what the job itself has to do with that."""
    if result.verdict.outcome is not Outcome.FAIL or not looks_into(request):
        return result
    runs = Counter(one["batch"] for one in result.verdict.attempts if "offsets" in one)
    again = sorted(batch for batch, count in runs.items() if count > 1)
    if not again:
        return result
    try:
        determinism = determinism_of(session, request, result.directory, again)
    except Unavailable as error:  # the verdict stands
        return replace(result, warnings=[*result.warnings, f"the job was not looked into: {one_line(error)}"])
    if determinism is None:
        return result
    found = replace(result, determinism=determinism)
    write_trial(found)
    return found


def _text_of(faults: tuple[str, ...], plan: str | None) -> str:
    """The same of ``--plan``, which may name a known failure: so it is taken if it is no file and looks like none."""
    if plan is None:
        return plan_text(faults, None)
    there = os.path.lexists(plan) and not os.path.isdir(plan)
    if "->" in plan and not there:
        raise UsageError(
            f"--plan {plan!r} is a plan's text, and --plan takes a file or a known failure's name: give the plan's "
            "text with --fault"
        )
    if there or os.sep in plan or Path(plan).suffix:
        return plan_text(faults, Path(plan))
    check_faults(faults)
    try:
        return ";\n".join([known_failure(plan).plan, *faults])
    except NoSuchFailure as error:
        raise UsageError(f"--plan {plan}: there is no such file, and {error}") from error


def plan_text(faults: tuple[str, ...], file: Path | None) -> str:
    """The plan of ``--fault`` options and a ``--plan`` file together. Raises UsageError."""
    check_faults(faults)
    if file is None:
        return ";\n".join(faults)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise UsageError(f"plan file {file} {no_file(file)}: give the path of a plan file") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"plan file {file} is no UTF-8 text: save it as UTF-8") from error
    except OSError as error:
        raise UsageError(f"plan file {file} cannot be read: {error}") from error
    if is_empty(text):
        raise UsageError(f"plan file {file} is empty: write a fault into it, as in docs/plans.md")
    return ";\n".join([text.strip().rstrip(";"), *faults])


def check_faults(faults: tuple[str, ...]) -> None:
    """Raises UsageError for one that names none, such as a script's variable that is not set: the trial would pass."""
    if any(is_empty(fault) for fault in faults):
        raise UsageError("--fault is empty: leave it out for a trial without faults")
