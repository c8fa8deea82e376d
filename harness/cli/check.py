"""``onceproof check``: judge a stored run again."""

from __future__ import annotations

import json as json_module
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from ...assertions import judge, load, verdict_as_json
from ..errors import UsageError
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

    Example:

        onceproof check .onceproof/runs/20260101-120000-1a2b3c
    """
    try:
        evidence = load(run)
    except ValueError as error:
        raise UsageError(str(error)) from error
    chosen = claim_of(claim)
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
