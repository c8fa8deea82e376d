"""Judges a stored sweep again, each point from the evidence in its run directory: ``onceproof check`` on a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...assertions import Evidence, Verdict, judge, load
from ...faults import format_fault, parse
from .attribution import Share, attribute
from .certificate import Certificate, anomalies_of, guarantee_of, outcome_of, summary_of
from .results import Judged, PointResult, judged


def rejudge(certificate: Certificate, directory: Path) -> Certificate:
    """The same certificate, with every verdict computed again. Raises ValueError for a damaged run directory."""
    runs = _Runs(directory)
    reference = _judged(certificate.reference, runs.of(certificate.reference)[1])
    points = [_point(point, runs) for point in certificate.points]
    trials: Sequence[Judged] = [reference, *points]
    coverage = certificate.coverage
    complete = (
        certificate.scope.whole
        and coverage.run == coverage.points > 0
        and not any(cell.missing for cell in certificate.scope.cells)
    )
    outcome = outcome_of([trial.verdict for trial in trials], complete)
    return certificate.model_copy(
        update={
            "verdict": outcome,
            "guarantee": guarantee_of(outcome, trials),
            "summary": summary_of(outcome, certificate.claim, certificate.scope, points, certificate.determinism),
            "anomalies": anomalies_of(trials),
            "reference": reference,
            "points": points,
        }
    )


class _Runs:
    """The runs of a sweep, each loaded and judged once for all of its points: those of one run follow one another."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._last: tuple[Path, Evidence, Verdict] | None = None

    def of(self, trial: Judged) -> tuple[Evidence, Verdict]:
        place = trial.place(self._directory)
        if self._last is None or self._last[0] != place:
            evidence = load(place)
            self._last = place, evidence, judge(evidence)
        return self._last[1:]


def _point(point: PointResult, runs: _Runs) -> PointResult:
    if point.without_trial:
        return point
    evidence, overall = runs.of(point)
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
