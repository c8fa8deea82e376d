"""``onceproof demo``: three sinks side by side."""

from __future__ import annotations

import json as json_module
import time
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console

from ...assertions import Outcome, Workload
from ..certificate import certificate_as_json, write_certificate
from ..certify import Certificate, certify
from ..errors import BROKE, HELD, INCONCLUSIVE
from ..reports.side_by_side import side_by_side
from ..reports.sweep import SweepReport
from ..run_directories import RUNS, new_run_directory
from ..session import Place, Request, Session
from .options import Json
from .signals import as_interrupt

SINKS = ("kafka_append", "postgres_upsert", "kafka_transactional")
BATCHES = 3
"""One before the batch at which the faults strike, and one after it."""


def register(app: App) -> None:
    app.command(demo)


def demo(
    *,
    parallel: Annotated[int, Parameter(help="trials run side by side")] = 2,
    json: Json = False,
) -> int:
    """Certify three reference sinks at each step of the commit protocol, and show side by side where each holds.

    Exit code 0 when each of them keeps what it claims.
    """
    console = Console(stderr=json)
    directory = new_run_directory(RUNS)
    start = time.monotonic()
    certificates: list[Certificate] = []
    with as_interrupt(), Session(Place()) as session:
        for sink in SINKS:
            report = SweepReport(console)
            report.start(sink)
            certificate = certify(
                session,
                Request(sink=sink, workload=Workload(batches=BATCHES)),
                directory / sink,
                kind="phases",
                parallel=parallel,
                announce=report.announce,
                done=report.done,
            )
            write_certificate(certificate, directory / sink)
            certificates.append(certificate)
    if json:
        documents = [certificate_as_json(one, directory / one.request.sink) for one in certificates]
        print(json_module.dumps(documents, indent=2, ensure_ascii=False))
    else:
        console.print(side_by_side(certificates))
        trials = sum(len(certificate.trials) for certificate in certificates)
        console.print(
            f"{trials} trials in {(time.monotonic() - start) / 60:.1f} min; run directory: {directory}", soft_wrap=True
        )
    outcomes = {certificate.outcome for certificate in certificates}
    if Outcome.FAIL in outcomes:
        return BROKE
    return INCONCLUSIVE if Outcome.INCONCLUSIVE in outcomes else HELD
