"""What counts for the verdict of a sweep besides the points that are asked for now; its trials are on paper."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from onceproof.faults import parse
from onceproof.harness.certification import question, traced
from onceproof.harness.certification.certificate import Certificate
from onceproof.harness.certification.certify import _SweepState
from onceproof.harness.certification.points import Space, SweepPoint
from onceproof.harness.certification.question import replay_of
from onceproof.harness.certification.results import Judged, PointResult, Store
from onceproof.harness.certification.trace import Step
from onceproof.harness.certification.traced import REPLAY, Trace
from onceproof.harness.certification.wanted import Wanted
from onceproof.harness.request import Request
from onceproof.harness.trial.document import SinkNamed, Versions, WorkloadUsed
from test_results import INPUTS, PLAN, result

DOCUMENT: Any = SimpleNamespace(
    claim="exactly-once",
    sink=SinkNamed(name="postgres_upsert", path="/x", guarantee="exactly-once"),
    workload=WorkloadUsed(seed=1, partitions=3, batches=3, rows=10, max_offsets_per_trigger=3),
    environment=Versions(python="3", spark="4", java="17", kafka="4"),
)
POINT = SweepPoint(Step("sink.write", "after"), "kill(driver)", "middle", 1, parse(PLAN))
GONE = "line[s.py:3][batch=1]#1 -> kill(driver)"


def judged(verdict: str, directory: Path) -> Judged:
    fields = {"verdict": verdict, "exactly_once": verdict, "guarantee": "exactly-once", "reason": "as it was"}
    return Judged.model_validate({**fields, "anomalies": {}, "seconds": 1.0, "run_directory": str(directory)})


def certificate(directory: Path, *stored: PointResult) -> Certificate:
    """Of a sweep that asks for one point and is whole."""
    store = Store(directory, INPUTS)
    for one in stored:
        store.add(one)
    reference, space = judged("pass", directory / "000-reference"), Space((POINT,))
    return _SweepState(
        Request("postgres_upsert"), directory, Wanted(), {"middle": 1}, reference, Trace(DOCUMENT, []), store, INPUTS,
        time.monotonic(), space=space, asked=space, whole=True,
    ).certificate()  # fmt: skip


def replayed(monkeypatch: pytest.MonkeyPatch, verdict: str, **more: str) -> None:
    """The traced replay of a sweep has come to this."""
    told: Any = judged(verdict, Path(REPLAY)).model_dump() | {"plan": PLAN, "faults": []}
    told |= {"timings": SimpleNamespace(total=1.0), **more}
    monkeypatch.setattr(traced, "read_trial", lambda place: SimpleNamespace(**told))


def test_a_failure_that_is_not_asked_for_any_more_is_one(tmp_path: Path) -> None:
    found = certificate(tmp_path, result(), result(GONE, "fail"))
    assert (found.verdict, [point.plan for point in found.points]) == ("fail", [PLAN, GONE])
    assert found.coverage.run == found.coverage.points == 1


def test_a_pass_that_is_not_asked_for_any_more_does_not_count(tmp_path: Path) -> None:
    found = certificate(tmp_path, result(), result(GONE))
    assert (found.verdict, [point.plan for point in found.points]) == ("pass", [PLAN])


@pytest.mark.parametrize(("replay", "verdict"), [("pass", "pass"), ("inconclusive", "inconclusive"), ("fail", "fail")])
def test_a_certificate_passes_only_if_the_replay_that_says_what_to_sweep_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replay: str, verdict: str
) -> None:
    replayed(monkeypatch, replay)
    assert certificate(tmp_path, result()).verdict == verdict


def test_a_replay_that_leaves_less_than_all_points_says_what_the_certificate_observed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replayed(monkeypatch, "pass", exactly_once="fail", guarantee="at-least-once")
    found = certificate(tmp_path, result())
    assert (found.verdict, found.guarantee, len(found.points)) == ("pass", "at-least-once", 2)
    (tmp_path / "other").mkdir()
    weaker = result().model_copy(update={"exactly_once": "fail", "guarantee": "at-least-once"})
    assert len(certificate(tmp_path / "other", weaker).points) == 1, "it says no more than the point"


def test_a_replay_that_is_inconclusive_is_traced_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = ["inconclusive", "pass", "pass"]
    seen: list[str] = []

    def trace(session: object, request: Request, directory: Path, name: str) -> tuple[Judged, Trace]:
        seen.append(verdicts.pop(0))
        return judged(seen[-1], tmp_path), Trace(DOCUMENT, [{"event": seen[-1]}])

    monkeypatch.setattr(question, "traced", trace)
    session: Any = None
    assert replay_of(session, Request("postgres_upsert"), tmp_path, {"middle": 1}) == [{"event": "pass"}]
    assert seen == ["inconclusive", "pass"]
