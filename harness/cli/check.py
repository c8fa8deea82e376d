"""``onceproof check``: judge a stored run again."""

from __future__ import annotations

import json as json_module
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console

from ...assertions import Outcome, judge, load, verdict_as_json
from ..certification.certificate import Certificate, certificate_text
from ..certification.rejudge import rejudge, stored_certificate
from ..errors import UsageError
from ..reports.sweep import SweepReport
from ..reports.trial import print_verdict
from .options import Json
from .options import claim as claim_of
from .run import EXIT


def register(app: App) -> None:
    app.command(check)


def check(
    run: Annotated[Path, Parameter(help="a run directory")],
    /,
    *,
    claim: Annotated[str | None, Parameter(help="judge by this guarantee instead of the one of the run")] = None,
    json: Json = False,
) -> int:
    """Judge a stored run again from its run directory, without Spark or Kafka; gives the same verdict.

    On the directory of a certification every point is judged again, and the certificate with them.

    Example:

        onceproof check .onceproof/runs/20260101-120000-1a2b3c
    """
    chosen = claim_of(claim)
    try:
        certificate = stored_certificate(run)
        if certificate is not None and chosen is not None:
            raise UsageError("check --claim takes a run directory, not that of a sweep: certify with --claim instead")
        if certificate is not None:
            return _check_certificate(certificate, run, json)
        evidence = load(run)
    except ValueError as error:
        raise UsageError(str(error)) from error
    verdict = judge(replace(evidence, claim=chosen) if chosen else evidence)
    if json:
        print(
            json_module.dumps(
                {**verdict_as_json(verdict), "run_directory": str(run.resolve())}, indent=2, ensure_ascii=False
            )
        )
    else:
        print_verdict(verdict)
    return EXIT[verdict.outcome]


def _check_certificate(stored: Certificate, directory: Path, json: bool) -> int:
    certificate = rejudge(stored, directory.resolve())
    if json:
        print(certificate_text(certificate))
    else:
        SweepReport(Console()).summary(certificate)
    return EXIT[Outcome(certificate.verdict)]
