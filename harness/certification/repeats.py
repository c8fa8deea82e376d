"""Is it the job? A trial in which batches are run again in front of jobs/recorder.py in the place of the sink."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ...faults import Plan, format_plan
from ..determinism import Determinism, compared
from ..errors import SinkError
from ..jobs import REFERENCE, find_job
from ..request import Request
from ..session import Session
from ..sinks import JOBS
from ..trial.trial import KEPT
from .points import crash_in
from .traced import traced

RECORDER = JOBS / "recorder.py"
DETERMINISM = "000-determinism"


def crashes(batches: Iterable[int]) -> str:
    """The plan by which each of these batches is run twice."""
    return format_plan(Plan(tuple(crash_in(batch) for batch in batches)))


def looks_into(request: Request) -> bool:
    """Whether there is anything to look into: not in the job that passes its input on as it is."""
    return find_job(request.job, request.expect).path != REFERENCE


def determinism_of(session: Session, request: Request, directory: Path, batches: Iterable[int]) -> Determinism | None:
    """What the job of ``request`` makes of ``batches`` when they are run again; the trial is kept in ``directory``.

    None where there is nothing to look into, for a job that fails in front of another sink than its own, and where no
    batch was run twice.
    """
    if not looks_into(request):
        return None
    asked = replace(request, sink=str(RECORDER), claim=None, plan=crashes(batches), keep=True, watch=False)
    try:
        traced(session, asked, directory, DETERMINISM)
    except SinkError:
        return None
    return compared(directory / DETERMINISM / KEPT)
