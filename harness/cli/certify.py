"""``onceproof certify``: a sweep over the points of one sink."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console

from ..certification.certificate import Certificate, certificate_text
from ..certification.certify import Wanted
from ..certification.certify import certify as run_sweep
from ..certification.points import Profile
from ..certification.roles import check_batch
from ..certification.settings import Settings, load_settings, save_settings
from ..certification.space import check_points
from ..errors import BROKE, HELD, INCONCLUSIVE, UsageError
from ..jobs import check_job, find_job
from ..reports.sweep import SweepReport
from ..run_directories import new_run_directory
from ..session import Request, Session
from ..sinks import find_sink, shape
from .options import COUNT, Claim, EnvironmentArguments, JobOptions, Json, WorkloadOptions
from .options import claim as claim_of
from .signals import as_interrupt

EXIT = {"pass": HELD, "fail": BROKE, "inconclusive": INCONCLUSIVE}


def register(app: App) -> None:
    app.command(certify)


def certify(
    sink: Annotated[str | None, Parameter(help="a sink file, or the name of one of ours (onceproof sinks)")] = None,
    /,
    *,
    profile: Annotated[
        Profile, Parameter(help="quick: kill(driver) at each step of the middle batch; full: every line in every batch")
    ] = "standard",
    points: Annotated[
        str, Parameter(help="all, phases, lines (of the sink's own code), or steps such as task.commit,sink.*:after")
    ] = "all",
    batch: Annotated[int | None, Parameter(help="strike at this batch only, instead of one for each role")] = None,
    pack: Annotated[int, Parameter(validator=COUNT, help="points that may share a run of the job")] = 8,
    parallel: Annotated[
        int | None, Parameter(validator=COUNT, help="trials run side by side [what the machine bears]")
    ] = None,
    fail_fast: Annotated[bool, Parameter(negative=(), help="end at the first failed point")] = False,
    claim: Claim = None,
    watch: Annotated[bool, Parameter(help="read the target while the job runs, too")] = True,
    resume: Annotated[
        Path | None, Parameter(help="go on with the sweep in this run directory; takes its sink and options from there")
    ] = None,
    run_directory: Annotated[
        Path | None, Parameter(help="where to keep the runs and the certificate (new or empty)")
    ] = None,
    json: Json = False,
    environment: EnvironmentArguments = EnvironmentArguments(),  # noqa: B008
    workload: WorkloadOptions = WorkloadOptions(),  # noqa: B008
    job: JobOptions = JobOptions(),  # noqa: B008
) -> int:
    """Certify a sink: a fault-free reference trace, a traced replay, then trials with faults at each point of both.

    The driver is killed before and after each step of the commit protocol that the sink has; tasks fail, executors,
    workers and brokers die where there are any; each line of the sink's own code, and of the modules that it imports
    from its directory, is killed at and fails; and what only a replay runs is struck a second time. All that in the
    first, second, a middle, a quiet and the last batch. The certificate says what was covered and what was left out.

    Exit code 0: the claim held at every point; 1: it broke; 3: inconclusive.

    Examples:

        onceproof certify my_sink.py

        onceproof certify postgres_upsert --profile quick --json > certificate.json

        onceproof certify --resume .onceproof/runs/20260101-120000-1a2b3c
    """
    if (sink is None) == (resume is None):
        raise UsageError("certify takes either a sink or --resume DIRECTORY, which knows its sink and options")
    if resume is not None:
        settings, directory = load_settings(resume), resume.resolve()
    else:
        request = Request(
            sink=str(find_sink(str(sink))),
            claim=claim_of(claim),
            workload=workload.workload(),
            watch=watch,
            job=job.job,
            expect=job.expect,
            conf=environment.properties(),
            jars=environment.jar_files(),
            deadline=environment.deadline,
            settle_deadline=environment.settle_deadline,
        )
        wanted = Wanted(profile, points, batch, pack, parallel, fail_fast)
        settings = Settings(request, environment.options(), wanted)
        check_points(points)
        if batch is not None:
            check_batch(batch, request.workload)
        check_job(find_job(request.job, request.expect), request.workload)
        shape(find_sink(request.sink))
        directory = new_run_directory(environment.runs, run_directory)
        save_settings(settings, directory)
    report = SweepReport(Console(stderr=json, quiet=json and not sys.stderr.isatty()))
    with as_interrupt(), Session(settings.environment) as session:
        report.start(find_sink(settings.request.sink).stem)
        certificate = run_sweep(
            session, settings.request, directory, settings.wanted, announce=report.announce, done=report.done
        )
    _print(certificate, report, json)
    return EXIT[certificate.verdict]


def _print(certificate: Certificate, report: SweepReport, json: bool) -> None:
    if json:
        print(certificate_text(certificate))
    else:
        report.summary(certificate)
