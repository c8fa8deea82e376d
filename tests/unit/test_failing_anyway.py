"""Points whose statement failed by itself are no part of the space, and are named."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from onceproof.faults import parse
from onceproof.harness.certification.failing_anyway import without_what_fails_anyway
from onceproof.harness.certification.points import Gap, Space, SweepPoint
from onceproof.harness.certification.results import Store
from onceproof.harness.certification.trace import Line

LATE = SweepPoint(
    Line("s.py", 7), "fail(after=true)", "middle", 1, parse("line[s.py:7][batch=1] -> fail(after=true)"), "at last"
)
FAILED = {"event": "probe.not_raised", "error": "FileNotFoundError"}


def left(result: dict[str, Any] | None, *journal: dict[str, Any]) -> Space:
    ended = {"verdict": "inconclusive", "reached": True, "without_trial": False}
    results = {} if result is None else {LATE.text: SimpleNamespace(**ended | result)}
    return without_what_fails_anyway(Space((LATE,)), cast(Store, results), lambda result: journal)


def test_a_statement_that_failed_by_itself_has_nothing_that_could_be_reported_as_failed() -> None:
    found = left({}, FAILED)
    assert found.points == ()
    assert found.impossible == (Gap(LATE.at, LATE.action, "middle", "at last: the statement fails there by itself"),)


@pytest.mark.parametrize(
    ("result", "journal"),
    [
        (None, [FAILED]),
        ({}, [{"event": "probe.raised"}]),
        ({"verdict": "pass"}, [FAILED]),
        ({"verdict": "fail"}, [FAILED]),
        ({"without_trial": True}, [FAILED]),
        ({"reached": False}, [FAILED]),
    ],
    ids=["not run", "raised", "passed", "failed", "without a trial", "not reached"],
)
def test_any_other_point_is_kept(result: dict[str, Any] | None, journal: list[dict[str, Any]]) -> None:
    assert left(result, *journal) == Space((LATE,))
