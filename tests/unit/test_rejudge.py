"""A stored sweep is judged again only if its certificate has all that it counts; its runs are on paper."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from onceproof.assertions import JOURNAL, save
from onceproof.faults import parse
from onceproof.harness.certification import rejudge as rejudging
from onceproof.harness.certification.certificate import CERTIFICATE, Certificate, write_certificate
from onceproof.harness.certification.certify import _SweepState
from onceproof.harness.certification.points import Gap, Space, SweepPoint
from onceproof.harness.certification.rejudge import rejudge
from onceproof.harness.certification.results import SEVERAL, Store
from onceproof.harness.certification.settings import SETTINGS
from onceproof.harness.certification.trace import Step
from onceproof.harness.certification.traced import REFERENCE, Trace
from onceproof.harness.certification.wanted import Wanted
from onceproof.harness.cli import execute
from onceproof.harness.errors import USAGE
from onceproof.harness.request import Request
from paper_trial import LANDED, evidence, killed_in_batch_1
from test_results import INPUTS, result
from test_what_a_certificate_counts import DOCUMENT, judged

HERE = Step("sink.commit", "after")
PLANS = [LANDED.text, *(f"sink.commit:after[batch={batch}] -> kill(driver)" for batch in (2, 3))]
POINTS = [SweepPoint(HERE, "kill(driver)", "middle", batch, parse(plan)) for batch, plan in enumerate(PLANS, 1)]
GONE = SweepPoint(HERE, "fail", "last", 4, parse("sink.commit:after[batch=4] -> fail"))


def swept(directory: Path, space: Space, asked: Space, *verdicts: str) -> Certificate:
    """What certify makes of a sweep whose POINTS came to these verdicts, in the runs 001, 002, ..., and last GONE."""
    directory.mkdir(exist_ok=True)
    store = Store(directory, INPUTS)
    for number, (point, verdict) in enumerate(zip([*POINTS, GONE], verdicts, strict=False), 1):
        place, cell = made(directory / f"{number:03d}"), (point.step, point.action, point.role)
        (place / JOURNAL).touch()
        store.add(result(point.text, verdict).model_copy(update={"run_directory": str(place), "cell": cell}))
    reference = judged("pass", directory / REFERENCE)
    return _SweepState(
        Request("postgres_upsert"), directory, Wanted(), {"middle": 1}, reference, Trace(DOCUMENT, []), store, INPUTS,
        time.monotonic(), space=space, asked=asked, whole=True,
    ).certificate()  # fmt: skip


def made(place: Path) -> Path:
    place.mkdir(exist_ok=True)
    return place


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    """Of a sweep over one point, that passed."""
    save(evidence(), made(tmp_path / REFERENCE))
    save(evidence(None, killed_in_batch_1(), LANDED), made(tmp_path / "001"))
    space = Space(tuple(POINTS[:1]))
    found = swept(tmp_path, space, space, "pass")
    assert found.verdict == "pass"
    return found


def with_parts(certificate: Certificate, part: str, **changes: Any) -> Certificate:
    return certificate.model_copy(update={part: getattr(certificate, part).model_copy(update=changes)})


def test_a_certificate_that_has_all_that_it_counts_is_judged_again(certificate: Certificate, tmp_path: Path) -> None:
    found = rejudge(certificate, tmp_path)
    assert (found.verdict, found.coverage, found.scope) == ("pass", certificate.coverage, certificate.scope)
    assert found.points[0].reason != certificate.points[0].reason, "it was made up"


CONTRADICTIONS: dict[str, Callable[[Certificate], Certificate]] = {
    "coverage.run is 1, but points has 0": lambda one: one.model_copy(update={"points": []}),
    "coverage.run is 10, but points has 1": lambda one: with_parts(one, "coverage", points=10, run=10, landed=10),
    "coverage.run is 1, but coverage.points 0": lambda one: with_parts(one, "coverage", points=0),
    "coverage.landed is 0, but points has 1 that did": lambda one: with_parts(one, "coverage", landed=0),
    "points has 1 that were run, but scope.cells none": lambda one: with_parts(one, "scope", cells=[]),
    "scope.cells has at least 1 that came to pass, but points 0": lambda one: one.model_copy(
        update={"points": [one.points[0].model_copy(update={"verdict": "fail"})]}
    ),
    "scope.cells has at least 1 that came to fail, but points 0": lambda one: with_parts(
        one, "scope", cells=[one.scope.cells[0].model_copy(update={"status": "fail"})]
    ),
    "scope.cells has at least 4 that came to pass, but points 1": lambda one: with_parts(
        one, "scope", cells=[one.scope.cells[0].model_copy(update={"points": 4})]
    ),
}


@pytest.mark.parametrize("reason", CONTRADICTIONS)
def test_a_certificate_whose_parts_do_not_go_together_is_damaged(
    reason: str, certificate: Certificate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_certificate(CONTRADICTIONS[reason](certificate), tmp_path)
    again = "certify"
    for _ in range(2):
        assert execute(["check", str(tmp_path)]) == USAGE
        said = f"onceproof: {tmp_path / CERTIFICATE} is damaged: {reason}: 'onceproof {again}' writes it anew"
        assert capsys.readouterr().err.splitlines() == [said]
        (tmp_path / SETTINGS).touch()
        again = f"certify --resume {tmp_path}"


def test_points_of_one_cell_may_have_come_to_different_verdicts(tmp_path: Path) -> None:
    space = Space(tuple(POINTS))
    found = swept(tmp_path, space, space, "pass", "fail", "inconclusive")
    assert [cell.status for cell in found.scope.cells] == ["fail"]
    assert not list(rejudging._contradictions(found))


def test_what_was_not_run_and_what_counts_besides_is_no_contradiction(tmp_path: Path) -> None:
    """A point that was struck, and that the space does not have any more; one without a result; one that is not asked
    for; cells without a point; a failure from before; and a run of several faults."""
    space = Space(tuple(POINTS[1:]), impossible=(Gap(HERE, "drop", "last", "no request"),))
    asked = Space(tuple(POINTS[:2]))
    several = result("; ".join(PLANS), "fail").model_copy(update={"cell": SEVERAL, "guarantee": "none"})
    Store(tmp_path, INPUTS).add(several)
    found = swept(tmp_path, space, asked, "fail", "pass", "pass", "fail")
    assert [point.plan for point in found.points] == [*PLANS[:2], GONE.text, several.plan]
    assert not list(rejudging._contradictions(found))
    early = swept(tmp_path / "early", space, asked)
    assert (early.coverage.run, early.points) == (0, [])
    assert not list(rejudging._contradictions(early))


@pytest.mark.parametrize("packed", [1, 2])
@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        ("sink.write:after -> kill(driver)", "'sink.write:after -> kill(driver)' was no fault of 001"),
        ("garbage[", "'garbage[' of 001 is no plan ("),
    ],
)
def test_a_certificate_with_a_plan_that_its_run_never_had_is_damaged(
    plan: str, reason: str, packed: int, certificate: Certificate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = certificate.points[0].model_copy(update={"plan": plan, "packed": packed})
    write_certificate(certificate.model_copy(update={"points": [changed]}), tmp_path)
    assert execute(["check", str(tmp_path)]) == USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"onceproof: {tmp_path / CERTIFICATE} is damaged: {reason}")
    assert line.endswith(": 'onceproof certify' writes it anew")
