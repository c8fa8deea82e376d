"""``onceproof check``: judge a stored run again."""

from __future__ import annotations

import json as json_module
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from ...assertions import Guarantee, Outcome, judge, load
from ..certification.certificate import Certificate, stored_certificate
from ..certification.rejudge import rejudge
from ..console.printing import Terminal, say
from ..console.sweep import SweepReport
from ..console.trial import print_verdict
from ..errors import UsageError
from ..reports import Report, StoredTrial, report_named, reports, written
from ..trial.record import TRIAL
from .options import Claim, Directory, Json
from .run import EXIT


def register(app: App) -> None:
    app.command(check)


def check(
    run: Annotated[Directory, Parameter(help="a run directory")],
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
        raise UsageError(str(error)) from error
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
    certificate = stored_certificate(directory)
    if certificate is None:
        evidence = load(directory)
        verdict = judge(replace(evidence, claim=claim) if claim else evidence)
        return StoredTrial(verdict, directory.resolve(), _about(directory))
    if claim is not None:
        raise UsageError("check --claim takes a run directory, not that of a sweep: certify with --claim instead")
    return rejudge(certificate, directory.resolve())


def _about(directory: Path) -> Mapping[str, Any]:
    """The trial's own document, empty if it is not there or cannot be read: nothing of it is judged."""
    try:
        found = json_module.loads((directory / TRIAL).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
