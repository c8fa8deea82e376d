"""The runs that say which points there are: one without a fault, and one in which each batch is replayed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...assertions import JOURNAL
from ..session import Request, Session
from ..trial.document import TrialDocument
from ..trial.record import read_trial
from .results import Judged
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
    """A trial with all probes, or the one that this sweep ran before it was resumed: its verdict and its journal."""
    place = directory / name
    trace = _stored_trace(place)
    if trace is None:
        if place.exists():  # cut short
            shutil.rmtree(place)
        session.trial(replace(request, trace=True, directory=place))
        trace = _read_trace(place)
    fields = {name: getattr(trace.document, name) for name in JUDGED}
    return Judged(**fields, seconds=trace.document.timings.total, run_directory=str(place)), trace


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
