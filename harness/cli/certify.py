"""``onceproof certify``: a sweep over the points of one sink."""

from __future__ import annotations

import fcntl
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Annotated

from cyclopts import App, Argument, Group, Parameter

from ..certification.certificate import Certificate, certificate_text
from ..certification.certify import certify as run_sweep
from ..certification.points import Profile
from ..certification.results import INPUTS
from ..certification.roles import check_batch
from ..certification.settings import SETTINGS, Settings, load_settings, save_settings
from ..certification.space import ALL, PLANS, check_points
from ..certification.wanted import Wanted
from ..console.printing import Terminal, say
from ..console.sweep import SweepReport
from ..environment_options import check_environment, make_ready
from ..errors import BROKE, HELD, INCONCLUSIVE, UsageError
from ..given_values import check_jars
from ..jobs import check_fit, check_job, find_job, shape_with
from ..releases import with_release
from ..request import with_brokers
from ..run_directories import check_unused, make_writable, new_run_directory
from ..sinks import find_sink
from ..triggers import check_sweep
from .options import (
    COUNT,
    GIVEN,
    Claim,
    EnvironmentArguments,
    JobOptions,
    Json,
    Watch,
    WorkloadOptions,
    request_of,
)
from .sessions import opened, told
from .values import check_values

EXIT = {"pass": HELD, "fail": BROKE, "inconclusive": INCONCLUSIVE}

ANEW = ("--parallel", "--fail-fast")
"""Options that may be chosen anew with ``--resume``: what is swept does not follow from them."""

WRITABLE = "go on with a copy of it elsewhere"
"""What helps where the directory of a sweep that is resumed cannot be written."""


def register(app: App) -> None:
    app.command(certify, config=(check_values, refuse_others))


@Parameter(name="*", group=Group("Sweep"))
@dataclass(frozen=True)
class SweepArguments:
    """What to sweep, and how."""

    profile: Annotated[
        Profile,
        Parameter(
            help="quick: kill(driver) at each step of the middle batch; demo: the same, the batches taking turns; "
            "full: besides, every execution of each line in every batch"
        ),
    ] = "standard"
    points: Annotated[
        str | None,
        GIVEN,
        Parameter(
            help="all, phases, effects, lines (of the sink's own code), plans (the known failures), or steps such as "
            "task.commit,sink.*:after; several with commas [all]"
        ),
    ] = None
    batch: Annotated[
        int | None,
        GIVEN,
        Parameter(help="strike at this batch only, instead of one for each role"),
    ] = None
    pack: Annotated[int, Parameter(validator=COUNT, help="points that may share a run of the job")] = 8
    parallel: Annotated[
        int | None,
        GIVEN,
        Parameter(validator=COUNT, help="trials run side by side [as many as this machine can run]"),
    ] = None
    fail_fast: Annotated[bool, Parameter(negative=(), help="end at the first failed point")] = False
    plans: Annotated[bool, Parameter(negative=(), help="the known failures that fit the sink: --points plans")] = False

    def wanted(self) -> Wanted:
        return Wanted(self.profile, self._points(), self.batch, self.pack, self.parallel, self.fail_fast)

    def _points(self) -> str:
        """Raises UsageError for --plans beside other points."""
        if not self.plans:
            return ALL if self.points is None else self.points
        if self.points not in (None, PLANS):
            raise UsageError(f"--plans is --points {PLANS}: with others, take --points {PLANS},{self.points}")
        return PLANS

    def over(self, settings: Settings) -> Settings:
        """What a sweep that goes on does, with what of it may be chosen anew."""
        before = settings.wanted
        parallel = before.parallel if self.parallel is None else self.parallel
        return replace(
            settings, wanted=replace(before, parallel=parallel, fail_fast=self.fail_fast or before.fail_fast)
        )


def certify(
    sink: Annotated[str | None, Parameter(help="a sink file, or the name of a built-in sink (onceproof sinks)")] = None,
    *,
    claim: Claim = None,
    watch: Watch = True,
    resume: Annotated[
        Path | None,
        Parameter(
            help="go on with the sweep in this run directory, with its sink and options, of which --parallel and "
            "--fail-fast may be chosen anew"
        ),
    ] = None,
    run_directory: Annotated[
        Path | None, Parameter(help="where to keep the runs and the certificate (new or empty)")
    ] = None,
    json: Json = False,
    sweep: SweepArguments = SweepArguments(),
    environment: EnvironmentArguments = EnvironmentArguments(),  # noqa: B008
    workload: WorkloadOptions = WorkloadOptions(),  # noqa: B008
    job: JobOptions = JobOptions(),  # noqa: B008
) -> int:
    """Certify a sink: a fault-free reference trace, a traced replay, then trials with faults at each point of both.

    In the first, second, a middle, a quiet and the last batch the driver is killed before and after each step of the
    commit protocol that the sink has, and before each request and change of a file that it makes; tasks fail,
    executors, workers and brokers die where there are any. At the first and the last execution of each line of the
    sink's own code, and of the modules that it imports from its directory, the driver is killed, and an error is
    raised, in one of these batches, which take turns; so do requests and changes of files that fail. What only a replay
    runs is struck a second time. The certificate says what was covered and what was left out.

    Exit code 0: the claim held at every point; 1: it broke; 3: inconclusive.

    Examples:

        onceproof certify my_sink.py

        onceproof certify postgres_upsert --profile quick --json > certificate.json

        onceproof certify --resume .onceproof/runs/20260101-120000-1a2b3c
    """
    if (sink is None) == (resume is None):
        raise UsageError("certify takes either a sink or --resume DIRECTORY, which knows its sink and options")
    if resume is not None:
        settings = sweep.over(load_settings(resume))
        _check(settings)
        check_jars(settings.request.jars)
        make_writable(resume, WRITABLE)
        return _certify(settings, resume.resolve(), json)
    path = find_sink(str(sink))
    request = request_of(str(path), claim, watch, environment, workload, job)
    check_environment(environment.options())
    settings = Settings(request, with_brokers(environment.options(), "", path), sweep.wanted())
    _check(settings)
    if run_directory is not None:
        check_unused(run_directory)
    settings = replace(settings, environment=with_release(settings.environment, path, told))
    with new_run_directory(environment.runs, run_directory, no_evidence=(SETTINGS, INPUTS)) as directory:
        save_settings(settings, directory)
        return _certify(settings, directory, json)


def refuse_others(app: App, commands: tuple[str, ...], arguments: Iterable[Argument]) -> None:
    """For ``App(config=...)``. Raises UsageError for options that ``--resume`` does not follow, whatever their values:
    what is given as the default may not be what the sweep was begun with."""
    given = {argument.name: argument.tokens[0].keyword or argument.name for argument in arguments if argument.tokens}
    others = [given[name] for name in given if name not in ("--sink", "--resume", "--json", *ANEW)]
    if "--resume" in given and others:
        raise UsageError(
            f"--resume goes on with the options of its sweep: leave {', '.join(others)} out, or certify without it"
        )


def _check(settings: Settings) -> None:
    """What can be refused before anything starts. Raises UsageError."""
    request, wanted = settings.request, settings.wanted
    check_points(wanted.points, wanted.profile)
    check_sweep(request.trigger)
    if wanted.batch is not None:
        check_batch(wanted.batch, request.workload)
    job, sink = find_job(request.job, request.expect), find_sink(request.sink)
    shape_with(job, sink, request.trigger, request.own_services)
    check_job(job, request.workload)
    check_fit(job, sink)


def _certify(settings: Settings, directory: Path, json: bool) -> int:
    """Sweep, print the certificate; returns the exit code."""
    report = SweepReport(Terminal(stderr=json, quiet=json and not sys.stderr.isatty()))
    with _alone_in(directory), opened(settings.environment) as session:
        make_ready(settings.environment, told)
        report.start(find_sink(settings.request.sink).stem)
        certificate = run_sweep(
            session, settings.request, directory, settings.wanted, announce=report.announce, done=report.done
        )
        _print(certificate, report, json)
    return EXIT[certificate.verdict]


@contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """For as long as a sweep is under way: nobody else goes on with it. A lock of flock(2) on its settings, which
    leaves nothing behind and dies with its holder. Raises UsageError where somebody has it."""
    with _writable(directory / SETTINGS) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:  # some file systems say that it is not permitted
            raise UsageError(f"--resume {directory}: its sweep is still running: wait for its end") from error
        except OSError:
            pass  # a file system without such locks
        yield


def _writable(path: Path) -> IO[bytes]:
    """Open for writing, which a lock needs on a network's file system. Raises UsageError."""
    try:
        return path.open("r+b")
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror}): {WRITABLE}") from error


def _print(certificate: Certificate, report: SweepReport, json: bool) -> None:
    if json:
        say(certificate_text(certificate))
    else:
        report.summary(certificate)
