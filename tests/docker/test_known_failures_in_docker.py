"""The library of known failures on containers: the same sinks are caught, and the same ones withstand."""

from __future__ import annotations

import pytest
from known_failures import assert_caught, assert_withstood
from onceproof.faults import KnownFailure, known_failures
from trials import Run

FAILURES = [pytest.param(failure, id=failure.name, marks=pytest.mark.long) for failure in known_failures()]


@pytest.mark.parametrize("failure", FAILURES)
def test_a_known_failure_catches_the_sink_that_it_names(trial: Run, failure: KnownFailure) -> None:
    assert_caught(trial, failure)


@pytest.mark.parametrize("failure", FAILURES)
def test_a_known_failure_is_withstood_by_the_sink_that_it_names(trial: Run, failure: KnownFailure) -> None:
    assert_withstood(trial, failure)
