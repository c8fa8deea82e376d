"""How often a point is tried, on paper: no trial runs, and what their session gives is made up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from onceproof.assertions import FaultReport, Guarantee, Outcome, Verdict
from onceproof.faults import parse
from onceproof.harness.certification.engine import TRIES, TRIES_OF_ONE_OF_SEVERAL, Engine
from onceproof.harness.certification.packing import Pack
from onceproof.harness.certification.points import SweepPoint
from onceproof.harness.certification.results import PointResult, Store
from onceproof.harness.certification.trace import Line
from onceproof.harness.errors import SinkError, Unavailable
from onceproof.harness.request import Request
from onceproof.harness.session import Session

PLAN = "line[s.py:7][batch=1]#1 -> kill(driver)"


def verdict(reached: bool) -> Verdict:
    outcome = Outcome.PASS if reached else Outcome.INCONCLUSIVE
    guarantee = Guarantee.EXACTLY_ONCE if reached else None
    fault = FaultReport(PLAN, reached, reached, reached, None)
    return Verdict(outcome, outcome, guarantee, Guarantee.EXACTLY_ONCE, "", faults=[fault])


class Tries:
    """A session whose trials reach their point from the ``nth`` one on."""

    def __init__(self, nth: int) -> None:
        self.nth, self.requests = nth, list[Request]()

    def trial(self, request: Request) -> Any:
        self.requests.append(request)
        return SimpleNamespace(
            verdict=verdict(len(self.requests) >= self.nth), timings={"total": 1.0}, directory=Path("/run")
        )


class Ends(Tries):
    """Its first ``trials`` end in an error."""

    def __init__(self, error: Exception, trials: int) -> None:
        super().__init__(0)
        self.error, self.trials = error, trials

    def trial(self, request: Request) -> Any:
        result = super().trial(request)
        if len(self.requests) <= self.trials:
            raise self.error
        return result


def tried(session: Tries, directory: Path, way: str = "") -> PointResult:
    found: list[PointResult] = []
    engine = Engine(cast(Session, session), Request("s.py"), directory, Store(directory, {}), done=found.append)
    point = SweepPoint(Line("s.py", 7), "kill(driver)", "middle", 1, parse(PLAN), way=way)
    assert engine.run([Pack((point,))], 1)
    (result,) = found
    return result


def test_a_line_that_a_trial_did_not_run_is_tried_again(tmp_path: Path) -> None:
    result = tried(Tries(nth=4), tmp_path)
    assert (result.verdict, result.reached, result.tries) == ("pass", True, 4)


def test_but_not_for_ever(tmp_path: Path) -> None:
    result = tried(session := Tries(nth=TRIES + 1), tmp_path)
    assert (result.verdict, result.reached, result.tries) == ("inconclusive", False, TRIES)
    assert len(session.requests) == TRIES


def test_one_that_others_may_stand_for_is_tried_less_often(tmp_path: Path) -> None:
    result = tried(Tries(nth=TRIES_OF_ONE_OF_SEVERAL + 1), tmp_path, way="a way")
    assert (result.reached, result.tries) == (False, TRIES_OF_ONE_OF_SEVERAL)


@pytest.mark.parametrize(
    ("error", "own_error"),
    [(SinkError("sink s.py fails by itself"), "sink s.py fails by itself"), (Unavailable("no Java"), None)],
)
def test_the_sinks_own_error_is_told_from_the_environments(
    tmp_path: Path, error: Exception, own_error: str | None
) -> None:
    result = tried(Ends(error, trials=2), tmp_path)
    assert (result.verdict, result.without_trial, result.own_error) == ("inconclusive", True, own_error)


class Varied(Tries):
    """Of its points, those of these lines find no environment, and those of any other end in an error of the sink's."""

    def __init__(self, broken: Sequence[int]) -> None:
        super().__init__(0)
        self.broken = broken

    def trial(self, request: Request) -> Any:
        if any(f"s.py:{line}]" in request.plan for line in self.broken):
            raise Unavailable("no broker")
        raise SinkError("sink s.py fails by itself")


@pytest.mark.parametrize(
    ("broken", "ends"), [((2, 3, 4), True), ((1, 3, 5), False)], ids=["in a row", "with others in between"]
)
def test_points_in_a_row_without_an_environment_end_a_sweep(tmp_path: Path, broken: Sequence[int], ends: bool) -> None:
    store = Store(tmp_path, {})
    engine = Engine(cast(Session, Varied(broken)), Request("s.py"), tmp_path, store)
    plans = [parse(PLAN.replace(":7", f":{line}")) for line in range(1, 7)]
    packs = [Pack((SweepPoint(Line("s.py", 7), "kill(driver)", "middle", 1, plan),)) for plan in plans]
    assert engine.run(packs, 1) is not ends


def test_a_trial_whose_environment_broke_by_itself_is_done_again(tmp_path: Path) -> None:
    broken = Unavailable("a transaction that was to be aborted can be read")
    result = tried(session := Ends(broken, trials=1), tmp_path)
    assert (result.verdict, result.reached, result.without_trial, len(session.requests)) == ("pass", True, False, 2)
