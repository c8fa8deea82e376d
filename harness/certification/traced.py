"""The runs that say which points there are: one without a fault, and one in which each batch is replayed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...assertions import JOURNAL
from ..request import Request
from ..session import Session
from ..trial.document import TrialDocument
from ..trial.record import read_trial
from .results import SEVERAL, Judged, PointResult
from .trace import Event

REFERENCE = "000-reference"
REPLAY = "000-replay"

JUDGED = ("verdict", "exactly_once", "guarantee", "reason", "anomalies", "notes")
"""What a sweep keeps of a trial's document."""


@dataclass(frozen=True)
class Trace:
    """A trial's JSON document and its journal."""

    document: TrialDocument
    journal: Sequence[Event]


def traced(session: Session, request: Request, directory: Path, name: str) -> tuple[Judged, Trace]:
    """A trial with all probes: its verdict and its journal. One that ran before the sweep was resumed is kept, unless
    it was inconclusive."""
    place = directory / name
    trace = _stored_trace(place)
    if trace is None or trace.document.verdict == "inconclusive":
        if place.exists():
            shutil.rmtree(place)
        session.trial(replace(request, trace=True, directory=place))
        trace = _read_trace(place)
    return Judged(**_judgement(trace.document, place)), trace


def judged_replay(directory: Path) -> PointResult | None:
    """The sweep's traced replay unless it has passed and was exactly-once. One that was not has several faults in one
    run, of which a point may ask for none; one that is inconclusive may lack what the sweep would strike at."""
    place = directory / REPLAY
    try:
        document = read_trial(place)
    except (OSError, ValueError):
        return None
    if document.verdict == document.exactly_once == "pass":
        return None
    return PointResult(
        **_judgement(document, place), step="several faults in one run: each batch is replayed", plan=document.plan,
        tries=1, cell=SEVERAL, batch=None, reached=all(fault.reached for fault in document.faults),
        landed=all(fault.confirmed for fault in document.faults), packed=1,
    )  # fmt: skip


def _judgement(document: TrialDocument, place: Path) -> dict[str, Any]:
    """The fields of Judged."""
    fields = {name: getattr(document, name) for name in JUDGED}
    return fields | {"seconds": document.timings.total, "run_directory": str(place)}


def _stored_trace(place: Path) -> Trace | None:
    """None if there is none, or what a power cut left of one."""
    try:
        return _read_trace(place)
    except (OSError, ValueError):
        return None


def _read_trace(place: Path) -> Trace:
    return Trace(read_trial(place), read_journal(place))


def read_journal(place: Path) -> Sequence[Event]:
    lines = (place / JOURNAL).read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]
