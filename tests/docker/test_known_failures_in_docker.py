"""The library of known failures on containers: the same sinks are caught, and the same ones withstand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from known_failures import assert_caught, assert_withstood
from onceproof.assertions import Guarantee
from onceproof.faults import KnownFailure, known_failures, parse
from onceproof.faults.settings import settings_of
from onceproof.harness.environment_options import EnvironmentOptions
from onceproof.harness.request import Request
from onceproof.harness.session import Session
from onceproof.harness.trial.spec import TrialResult
from trials import SMALL, Run

FAILURES = [pytest.param(failure, id=failure.name, marks=pytest.mark.long) for failure in known_failures()]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Tasks run in the driver's container, where no plan asks for another one: two JVMs fewer have to start."""
    opened: dict[str, Session] = {}
    apart = [one.plan for one in known_failures() if one.only or settings_of(parse(one.plan).settings).master]
    with ExitStack() as stack:

        def run(sink: str, plan: str, claim: str | None = None) -> TrialResult:
            master = "standalone" if plan in apart else "local[2,4]"
            if master not in opened:
                options = EnvironmentOptions(env="docker", master=master, runs=tmp_path_factory.mktemp("runs"))
                opened[master] = stack.enter_context(Session(options))
            return opened[master].trial(Request(sink, plan, Guarantee(claim) if claim else None, workload=SMALL))

        yield run


@pytest.mark.parametrize("failure", FAILURES)
def test_a_known_failure_catches_the_sink_that_it_names(run: Run, failure: KnownFailure) -> None:
    assert_caught(run, failure)


@pytest.mark.parametrize("failure", FAILURES)
def test_a_known_failure_is_withstood_by_the_sink_that_it_names(run: Run, failure: KnownFailure) -> None:
    assert_withstood(run, failure)
