"""Judges a stored sweep again, each point from the evidence in its run directory: ``onceproof check`` on a sweep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ...assertions import Evidence, OutcomeName, Verdict, judge, load
from ...faults import PlanError, format_fault, parse
from .attribution import Attributed, Share, attribute
from .certificate import CERTIFICATE, Certificate, anomalies_of, guarantee_of, outcome_of, summary_of
from .results import Judged, PointResult, judged
from .scope import Cell, Status
from .settings import SETTINGS

VERDICT_OF: Mapping[Status, OutcomeName] = {
    "pass": "pass",
    "fail": "fail",
    "inconclusive": "inconclusive",
    "not reached": "inconclusive",
}
"""What the points of a cell with this status came to, or the worst of them. Other cells say nothing of any result."""


def rejudge(certificate: Certificate, directory: Path) -> Certificate:
    """The same certificate, with every verdict computed again. Raises ValueError for a damaged run directory, and for a
    certificate whose parts do not go together."""
    if contradiction := next(_contradictions(certificate), None):
        raise _damaged(directory, contradiction)
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
            "summary": summary_of(
                outcome, certificate.claim, certificate.scope, reference, points, certificate.determinism
            ),
            "anomalies": anomalies_of(trials),
            "reference": reference,
            "points": points,
        }
    )


def _contradictions(certificate: Certificate) -> Iterator[str]:
    """What cannot be where all of it is there: the points that were asked for come first, and behind them what counts
    besides (runs of several faults, failures that are not asked for any more)."""
    coverage, cells = certificate.coverage, certificate.scope.cells
    run = certificate.points[: coverage.run]
    if len(run) < coverage.run:
        yield f"coverage.run is {coverage.run}, but points has {len(run)}"
    if coverage.run > coverage.points:
        yield f"coverage.run is {coverage.run}, but coverage.points {coverage.points}"
    if (landed := sum(point.landed for point in run)) != coverage.landed:
        yield f"coverage.landed is {coverage.landed}, but points has {landed} that did"
    if run and not any(cell.points for cell in cells):
        yield f"points has {len(run)} that were run, but scope.cells none"
    if certificate.scope.whole:  # each point of the cells has a plan of its own
        yield from _without_points(cells, run)


def _without_points(cells: Iterable[Cell], run: Iterable[PointResult]) -> Iterator[str]:
    """A cell that passed has only points that did; one with another verdict has one of these at least."""
    least, found = Counter[OutcomeName](), Counter(point.verdict for point in run)
    for cell in cells:
        if cell.points and cell.status in VERDICT_OF:
            least[VERDICT_OF[cell.status]] += cell.points if cell.status == "pass" else 1
    for verdict, count in least.items():
        if found[verdict] < count:
            yield f"scope.cells has at least {count} that came to {verdict}, but points {found[verdict]}"


def _damaged(directory: Path, what: str) -> ValueError:
    again = f"certify --resume {directory}" if (directory / SETTINGS).is_file() else "certify"
    return ValueError(f"{directory / CERTIFICATE} is damaged: {what}: 'onceproof {again}' writes it anew")


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
    faults = {point.plan: _faults_of(point, evidence, place) for point in points}
    overall = judge(evidence)
    shared = [point for point in points if point.packed > 1 and point.batch is not None]
    shares = [Share(faults[point.plan], point.batch) for point in shared if point.batch is not None]
    yield from _of_shared_run(shared, attribute(shares, evidence, overall))
    yield from (_with(point, overall) for point in points if point not in shared)


def _faults_of(point: PointResult, evidence: Evidence, place: Path) -> frozenset[int]:
    """The numbers of its plan's faults among those of the run. Raises ValueError where they are none of these."""
    texts = [fault.text for fault in evidence.faults]
    try:
        own = [format_fault(fault) for fault in parse(point.plan).faults]
    except PlanError as error:
        raise _damaged(place.parent, f"{point.plan!r} of {place.name} is no plan ({error.message})") from error
    if others := [text for text in own if text not in texts]:
        raise _damaged(place.parent, f"{others[0]!r} was no fault of {place.name}")
    return frozenset(map(texts.index, own))


def _of_shared_run(points: Sequence[PointResult], found: Sequence[Attributed]) -> Iterator[PointResult]:
    for point, one in zip(points, found, strict=True):
        if one.verdict is None:
            raise ValueError(f"{point.run_directory}: {point.plan} cannot be judged by its run: {one.unclear}")
        yield _with(point, one.verdict)


def _with(point: PointResult, verdict: Verdict) -> PointResult:
    return point.model_copy(update=_judged(point, verdict).model_dump())


def _judged(trial: Judged, verdict: Verdict) -> Judged:
    return judged(verdict, trial.seconds, Path(trial.run_directory))
