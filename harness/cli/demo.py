"""``onceproof demo``: three sinks side by side."""

from __future__ import annotations

import json as json_module
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console

from ..certification.certificate import Certificate, certificate_as_json
from ..certification.certify import certify
from ..certification.results import INPUTS
from ..certification.wanted import Wanted
from ..console.printing import Terminal, say
from ..console.side_by_side import side_by_side
from ..console.sweep import SweepReport
from ..environment_options import EnvironmentOptions
from ..errors import BROKE, HELD, INCONCLUSIVE
from ..request import Request
from ..run_directories import RUNS, new_run_directory
from ..session import Session
from .options import COUNT, EnvName, Json
from .sessions import opened

SINKS = ("kafka_append", "postgres_upsert", "kafka_transactional")


def register(app: App) -> None:
    app.command(demo)


class _Sweep:
    """A sink's sweep in a thread of its own: the trials of all sinks take turns, so that no core waits for a sink."""

    def __init__(self, session: Session, sink: str, directory: Path, parallel: int, console: Console) -> None:
        self._certificate: Future[Certificate] = Future()
        self.result = self._certificate.result
        arguments = (session, sink, directory, parallel, SweepReport(console, sink))
        threading.Thread(target=self._run, args=arguments, daemon=True).start()

    def _run(self, session: Session, sink: str, directory: Path, parallel: int, report: SweepReport) -> None:
        try:
            report.start(sink)
            request = Request(sink=sink)
            wanted = Wanted(profile="demo", parallel=parallel)
            certificate = certify(session, request, directory, wanted, announce=report.announce, done=report.done)
            self._certificate.set_result(certificate)
        except BaseException as error:
            self._certificate.set_exception(error)


def demo(
    *,
    env: Annotated[EnvName, Parameter(help="local: processes on this machine; docker: docker-compose.yml")] = "local",
    parallel: Annotated[int, Parameter(validator=COUNT, help="trials run side by side")] = 3,
    json: Json = False,
) -> int:
    """Certify three reference sinks at each step of the commit protocol, and show side by side where each holds.

    Exit code 0 when each of them keeps what it claims.
    """
    console = Terminal(stderr=json)
    options = EnvironmentOptions(env=env)
    start = time.monotonic()
    with (
        new_run_directory(RUNS, no_evidence=(INPUTS,)) as directory,
        opened(options, at_once=parallel) as session,
    ):
        sweeps = [_Sweep(session, sink, directory / sink, parallel, console) for sink in SINKS]
        certificates = [sweep.result() for sweep in sweeps]
        if json:
            say(json_module.dumps([certificate_as_json(one) for one in certificates], indent=2, ensure_ascii=False))
        else:
            _print(certificates, time.monotonic() - start, directory, console)
    outcomes = {certificate.verdict for certificate in certificates}
    if "fail" in outcomes:
        return BROKE
    return INCONCLUSIVE if "inconclusive" in outcomes else HELD


def _print(certificates: Sequence[Certificate], seconds: float, directory: Path, console: Console) -> None:
    console.print(side_by_side(certificates))
    points = sum(len(certificate.points) + 1 for certificate in certificates)
    console.print(f"{points} points in {seconds / 60:.1f} min; run directory: {directory}", soft_wrap=True)
