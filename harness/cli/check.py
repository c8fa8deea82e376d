"""``onceproof check``: judge a stored run again."""

from __future__ import annotations

import json as json_module
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from ...assertions import Guarantee, Outcome, judge, load
from ...assertions.storage import EVIDENCE
from ...documents import DocumentError
from ...faults.errors import listed
from ..certification.certificate import CERTIFICATE, Certificate, stored_certificate
from ..certification.rejudge import rejudge
from ..certification.settings import SETTINGS
from ..console.printing import Terminal, say
from ..console.sweep import SweepReport
from ..console.trial import print_verdict
from ..errors import UsageError, no_file
from ..reports import Report, StoredTrial, report_named, reports, written
from ..trial.record import TRIAL
from .options import Claim, Json
from .run import EXIT

OTHER_VERSION = "another version of onceproof has written it, or it is damaged"

SHOWN = 3
"""So many directories that can be checked are named, the last by their names: those begin with the time."""


def register(app: App) -> None:
    app.command(check)


def check(
    run: Annotated[Path, Parameter(help="a run directory")],
    /,
    *,
    claim: Claim = None,
    report: Annotated[str | None, Parameter(help=f"print this report: {', '.join(reports())}")] = None,
    json: Json = False,
) -> int:
    """Judge a stored run again from its run directory, without Spark or Kafka; gives the same verdict.

    On the directory of a certification every point is judged again, and the certificate with them.

    Examples:

        onceproof check .onceproof/runs/20260101-120000-1a2b3c

        onceproof check .onceproof/runs/20260101-120000-1a2b3c --report markdown
    """
    wanted = _wanted(report, json)
    try:
        result = _judged(run, Guarantee(claim) if claim else None)
    except ValueError as error:
        raise UsageError(f"{error}{_perhaps_of_another_version(error)}") from error
    if wanted is not None:
        say(written(wanted, result))
    elif isinstance(result, Certificate):
        SweepReport(Terminal()).summary(result)
    else:
        print_verdict(result.verdict)
    return EXIT[Outcome(result.verdict) if isinstance(result, Certificate) else result.verdict.outcome]


def _wanted(name: str | None, json: bool) -> Report | None:
    """The report that was asked for; None is what ``run`` and ``certify`` print. Raises UsageError."""
    if json and name not in (None, "json"):
        raise UsageError(f"--json is the same as --report json: leave it out, or --report {name}")
    name = "json" if json else name
    return None if name is None else report_named(name)


def _judged(directory: Path, claim: Guarantee | None) -> StoredTrial | Certificate:
    """Raises UsageError, and ValueError for a run directory that is damaged."""
    certificate = _certificate_in(directory)
    if certificate is None:
        _check_is_run(directory)
        evidence = load(directory)
        verdict = judge(replace(evidence, claim=claim) if claim else evidence)
        return StoredTrial(verdict, directory.resolve(), _about(directory))
    if claim is not None:
        raise UsageError("check --claim takes a run directory, not that of a sweep: certify with --claim instead")
    return rejudge(certificate, directory.resolve())


def _certificate_in(directory: Path) -> Certificate | None:
    """That of a sweep's run directory. Raises UsageError for one that cannot be read, with what makes it anew."""
    try:
        return stored_certificate(directory)
    except UsageError as error:
        if not isinstance(error.__cause__, DocumentError):
            raise
        again = f"certify --resume {directory}" if (directory / SETTINGS).is_file() else "certify"
        raise UsageError(f"{error}: {OTHER_VERSION}: 'onceproof {again}' writes it anew") from error


def _perhaps_of_another_version(error: ValueError) -> str:
    """Of a document that does not have the fields that it has now: which of the two it is, nothing tells."""
    return f": {OTHER_VERSION}: run it again" if isinstance(error.__cause__, DocumentError) else ""


def _check_is_run(directory: Path) -> None:
    """Raises UsageError for a directory without a trial's evidence, by what it holds instead."""
    if not directory.is_dir():
        raise UsageError(
            f"{directory} {'is a file' if directory.exists() else no_file(directory)}: give the path of a run directory"
        )
    if (directory / EVIDENCE).is_file():
        return
    if (directory / SETTINGS).is_file():
        raise UsageError(
            f"{directory} is a sweep's directory without a certificate: 'onceproof certify --resume {directory}' "
            "writes one"
        )
    below = {
        "sweep": [file.parent for depth in ("*", "*/*") for file in directory.glob(f"{depth}/{CERTIFICATE}")],
        "run": [file.parent for file in directory.glob(f"*/{EVIDENCE}")],
    }
    held = [f"{len(found)} {kind}{'s' * (len(found) > 1)}" for kind, found in below.items() if found]
    if held:
        each = sorted(str(one) for found in below.values() for one in found)
        which = f"{'one, such as ' if each[SHOWN:] else ''}{listed(each[-SHOWN:])}"
        raise UsageError(f"{directory} is no run directory, but holds {' and '.join(held)}: check {which}")


def _about(directory: Path) -> Mapping[str, Any]:
    """The trial's own document, empty if it is not there or cannot be read: nothing of it is judged."""
    try:
        found = json_module.loads((directory / TRIAL).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
