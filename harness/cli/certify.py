"""``onceproof certify``: a sweep over the points of one sink."""

from __future__ import annotations

import json as json_module
import sys
from pathlib import Path
from typing import Annotated, get_args

from cyclopts import App, Parameter
from rich.console import Console

from ..certificate import certificate_as_json, write_certificate
from ..certify import certify as run_sweep
from ..certify import check_batch
from ..errors import UsageError
from ..points import Kind
from ..reports.sweep import SweepReport
from ..run_directories import new_run_directory
from ..session import Request, Session
from ..sinks import find_sink, shape
from .options import Json, PlaceOptions, WorkloadOptions
from .options import claim as claim_of
from .run import EXIT
from .signals import as_interrupt


def register(app: App) -> None:
    app.command(certify)


def certify(
    sink: Annotated[str, Parameter(help="a sink file, or the name of one of ours (onceproof sinks)")],
    /,
    *,
    points: Annotated[str, Parameter(help="phases, lines (of the sink's own code) or all")] = "all",
    batch: Annotated[int, Parameter(help="the batch at whose steps the faults strike")] = 1,
    parallel: Annotated[int, Parameter(help="trials run side by side")] = 1,
    fail_fast: Annotated[bool, Parameter(negative=(), help="end at the first failed point")] = False,
    claim: Annotated[str | None, Parameter(help="judge by this guarantee instead of the sink's own")] = None,
    run_directory: Annotated[
        Path | None, Parameter(help="where to keep the runs and the certificate (new or empty)")
    ] = None,
    json: Json = False,
    place: PlaceOptions = PlaceOptions(),  # noqa: B008
    workload: WorkloadOptions = WorkloadOptions(),  # noqa: B008
) -> int:
    """Certify a sink: a fault-free reference trace, then one trial with a fault at each point of it.

    The driver is killed before and after each step of the commit protocol that the sink has, with one task ended and
    no other begun, and at each line of the sink's own code, where a failure is raised as well.

    Exit code 0: the claim held at every point; 1: it broke; 3: inconclusive.

    Examples:

        onceproof certify my_sink.py

        onceproof certify postgres_upsert --points phases --json > certificate.json
    """
    if points not in get_args(Kind):
        raise UsageError(f"--points {points!r} is unknown: it is one of {', '.join(get_args(Kind))}")
    if parallel < 1:
        raise UsageError(f"--parallel {parallel} is too small: it is at least 1")
    request = Request(
        sink=sink,
        claim=claim_of(claim),
        workload=workload.workload(),
        conf=place.properties(),
        jars=place.jar_files(),
        deadline=place.deadline,
        settle_deadline=place.settle_deadline,
    )
    check_batch(batch, request.workload)
    shape(find_sink(sink))
    directory = new_run_directory(place.runs, run_directory)
    report = SweepReport(Console(stderr=json, quiet=json and not sys.stderr.isatty()))
    with as_interrupt(), Session(place.place()) as session:
        report.start(find_sink(sink).stem)
        certificate = run_sweep(
            session,
            request,
            directory,
            batch=batch,
            kind=points,  # type: ignore[arg-type]
            parallel=parallel,
            fail_fast=fail_fast,
            announce=report.announce,
            done=report.done,
        )
    write_certificate(certificate, directory)
    if json:
        print(json_module.dumps(certificate_as_json(certificate, directory), indent=2, ensure_ascii=False))
    else:
        report.summary(certificate, directory)
    return EXIT[certificate.outcome]
