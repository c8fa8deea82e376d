"""Judges a stored sweep again, each point from the evidence in its run directory: ``onceproof check`` on a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from ...assertions import Evidence, Verdict, judge, load
from ...faults import format_fault, parse
from ..errors import UsageError
from .attribution import Share, attribute
from .certificate import CERTIFICATE, Certificate, anomalies_of, guarantee_of, outcome_of, summary_of
from .results import Judged, PointResult, judged


def stored_certificate(directory: Path) -> Certificate | None:
    """The certificate of a sweep's run directory; None if it has none. Raises UsageError if it is damaged."""
    path = directory / CERTIFICATE
    if not path.is_file():
        return None
    try:
        return Certificate.model_validate_json(path.read_bytes())
    except ValueError as error:
        raise UsageError(f"{path} is damaged: {' '.join(str(error).split())[:300]}") from error


def rejudge(certificate: Certificate, directory: Path) -> Certificate:
    """The same certificate, with every verdict computed again. Raises ValueError for a damaged run directory."""
    reference = _judged(certificate.reference, judge(_evidence(_here(certificate.reference, directory))))
    points = [_point(point, directory) for point in certificate.points]
    trials: Sequence[Judged] = [reference, *points]
    complete = certificate.coverage.run == certificate.coverage.points > 0 and not any(
        cell.status == "not reached" and not cell.points for cell in certificate.scope.cells
    )
    outcome = outcome_of([trial.verdict for trial in trials], complete)
    return certificate.model_copy(
        update={
            "verdict": outcome,
            "guarantee": guarantee_of(outcome, trials),
            "summary": summary_of(outcome, certificate.claim, certificate.scope, points),
            "anomalies": anomalies_of(trials),
            "reference": reference,
            "points": points,
        }
    )


def _point(point: PointResult, directory: Path) -> PointResult:
    if point.without_trial:
        return point
    evidence = _evidence(_here(point, directory))
    overall = judge(evidence)
    if point.packed == 1 or point.batch is None:
        return point.model_copy(update=_judged(point, overall).model_dump())
    texts = [fault.text for fault in evidence.faults]
    mine = frozenset(texts.index(format_fault(fault)) for fault in parse(point.plan).faults)
    (found,) = attribute([Share(mine, point.batch)], evidence, overall)
    if found.verdict is None:
        raise ValueError(f"{point.run_directory}: {point.plan} cannot be judged by its run: {found.unclear}")
    return point.model_copy(update=_judged(point, found.verdict).model_dump())


def _judged(trial: Judged, verdict: Verdict) -> Judged:
    return judged(verdict, trial.seconds, Path(trial.run_directory))


def _here(trial: Judged, directory: Path) -> Path:
    """The trial's run directory, also where the sweep's has been moved."""
    return directory / Path(trial.run_directory).name


@lru_cache(maxsize=4)
def _evidence(directory: Path) -> Evidence:
    return load(directory)
