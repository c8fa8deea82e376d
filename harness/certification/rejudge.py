"""Judges a stored sweep again, each point from the evidence in its run directory: ``onceproof check`` on a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...assertions import Evidence, Verdict, judge, load
from ...faults import format_fault, parse
from .attribution import Share, attribute
from .certificate import Certificate, anomalies_of, guarantee_of, outcome_of, summary_of
from .results import Judged, PointResult, judged


def rejudge(certificate: Certificate, directory: Path) -> Certificate:
    """The same certificate, with every verdict computed again. Raises ValueError for a damaged run directory."""
    reference = _again(certificate.reference, directory)
    points = _points(certificate.points, directory)
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


def _again(trial: Judged, directory: Path) -> Judged:
    return _judged(trial, judge(load(trial.place(directory))))


def _points(points: Sequence[PointResult], directory: Path) -> list[PointResult]:
    of_run: dict[Path, list[PointResult]] = {}
    for point in points:
        if not point.without_trial:
            of_run.setdefault(point.place(directory), []).append(point)
    again = {point.plan: point for place, some in of_run.items() for point in _of_run(some, place)}
    return [again.get(point.plan, point) for point in points]


def _of_run(points: Sequence[PointResult], place: Path) -> Iterator[PointResult]:
    """Those that shared the run are judged together: whether one may be judged by it depends on the others."""
    evidence = load(place)
    overall = judge(evidence)
    shared = [point for point in points if point.packed > 1 and point.batch is not None]
    yield from _of_shared_run(shared, evidence, overall)
    yield from (_with(point, overall) for point in points if point not in shared)


def _of_shared_run(points: Sequence[PointResult], evidence: Evidence, overall: Verdict) -> Iterator[PointResult]:
    texts = [fault.text for fault in evidence.faults]
    shares = [
        Share(frozenset(texts.index(format_fault(fault)) for fault in parse(point.plan).faults), point.batch)
        for point in points
        if point.batch is not None
    ]
    for point, found in zip(points, attribute(shares, evidence, overall), strict=True):
        if found.verdict is None:
            raise ValueError(f"{point.run_directory}: {point.plan} cannot be judged by its run: {found.unclear}")
        yield _with(point, found.verdict)


def _with(point: PointResult, verdict: Verdict) -> PointResult:
    return point.model_copy(update=_judged(point, verdict).model_dump())


def _judged(trial: Judged, verdict: Verdict) -> Judged:
    return judged(verdict, trial.seconds, Path(trial.run_directory))
