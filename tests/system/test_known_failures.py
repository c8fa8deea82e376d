"""The library of known failures on the running system: each plan catches the one sink and not the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from known_failures import assert_caught, assert_withstood
from onceproof.assertions import Guarantee
from onceproof.faults import KnownFailure, known_failures
from onceproof.harness.environment_options import EnvironmentOptions
from onceproof.harness.request import Request, with_brokers
from onceproof.harness.session import Session
from onceproof.harness.trial.spec import TrialResult
from trials import SMALL, Run

FAILURES = [failure for failure in known_failures() if failure.only is None]

IN_SHORT = ("zombie_driver",)


def cases(*, caught: bool) -> list[Any]:
    return [
        pytest.param(failure, id=failure.name)
        if failure.name in IN_SHORT and caught
        else pytest.param(failure, id=failure.name, marks=pytest.mark.long)
        for failure in FAILURES
    ]


@pytest.fixture(scope="module")
def run(session: Session, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Runs a trial in the warm environment, or in one that has the brokers which the plan needs."""
    opened: dict[int | None, Session] = {None: session}
    with ExitStack() as stack:

        def run(sink: str, plan: str, claim: str | None = None) -> TrialResult:
            options = with_brokers(EnvironmentOptions(), plan)
            if options.brokers not in opened:
                own = EnvironmentOptions(brokers=options.brokers, runs=tmp_path_factory.mktemp("runs"))
                opened[options.brokers] = stack.enter_context(Session(own))
            request = Request(sink, plan, Guarantee(claim) if claim else None, workload=SMALL)
            return opened[options.brokers].trial(request)

        yield run


@pytest.mark.parametrize("failure", cases(caught=True))
def test_a_known_failure_catches_the_sink_that_it_names(run: Run, failure: KnownFailure) -> None:
    assert_caught(run, failure)


@pytest.mark.parametrize("failure", cases(caught=False))
def test_a_known_failure_is_withstood_by_the_sink_that_it_names(run: Run, failure: KnownFailure) -> None:
    assert_withstood(run, failure)
