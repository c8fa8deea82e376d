"""The library of known failures on the running system: each plan catches the one sink and not the other."""

from __future__ import annotations

from typing import Any

import pytest
from onceproof.faults import KnownFailure, known_failures
from trials import Run, described, landed

FAILURES = known_failures()

IN_SHORT = ("zombie_driver",)


def cases(*, caught: bool) -> list[Any]:
    return [
        pytest.param(failure, id=failure.name)
        if failure.name in IN_SHORT and caught
        else pytest.param(failure, id=failure.name, marks=pytest.mark.long)
        for failure in FAILURES
    ]


@pytest.mark.parametrize("failure", cases(caught=True))
def test_a_known_failure_catches_the_sink_that_it_names(trial: Run, failure: KnownFailure) -> None:
    result = trial(failure.catches.sink, failure.plan, failure.catches.claim)
    assert result.verdict.outcome == "fail", described(result)
    assert tuple(anomaly.kind for anomaly in result.verdict.anomalies) == failure.catches.finds, described(result)


@pytest.mark.parametrize("failure", cases(caught=False))
def test_a_known_failure_is_withstood_by_the_sink_that_it_names(trial: Run, failure: KnownFailure) -> None:
    result = trial(failure.withstands.sink, failure.plan)
    assert (result.verdict.outcome, result.verdict.guarantee) == ("pass", "exactly-once"), described(result)
    assert landed(result)
