"""Where a request that was refused was asked again, the sweep goes on with six refusals in a row."""

from __future__ import annotations

from typing import Any

import pytest
from onceproof.faults import parse
from onceproof.harness.certification.points import Question, SweepPoint
from onceproof.harness.certification.refusals import is_refused, refused_again
from onceproof.harness.certification.trace import Step

REFUSED = "request:before[service=api, kind=PUT, batch=1]#1 -> answer(FORBIDDEN)"


def request(kind: str = "PUT", run: str = "1", **more: Any) -> dict[str, Any]:
    where = {"phase": "request", "edge": "before", "service": "api", "kind": kind, "batch": 1}
    return {"event": "point", **where, "run": run, **more}


def point(text: str) -> SweepPoint:
    return SweepPoint(Step("request", "before"), text.rpartition(" -> ")[2], "middle", 1, parse(text))


def found(*after: dict[str, Any], trace: int = 1, **more: Any) -> list[str]:
    """What follows a trial whose first request was refused, and that did ``after`` then."""
    place = request(**more)
    reached = {"event": "fault.reached", "fault": 0, "text": REFUSED, "point": place}
    asked = [*[request(**more)] * trace, {**request(**more), "batch": 2}]
    question = Question(trace=asked, roles={"middle": 1}, refusal=lambda plan: None)
    return [one.text for one in refused_again(question, [(point(REFUSED), [place, reached, *after])])]


def test_a_refusal_that_another_try_follows_comes_six_times_in_a_row() -> None:
    again = "request:before[service=api, kind=PUT, batch=1]#1 -> answer(FORBIDDEN, times=6)"
    assert found(request()) == [again, f"{again}; batch.commit:after[batch=1] -> kill(driver)"]


@pytest.mark.parametrize(
    ("after", "trace"),
    [
        ([], 1),
        ([request(run="2"), request(run="2")], 1),
        ([request("GET")], 1),
        ([request()], 2),
        ([request(attempt=1, partition=0)], 1),
    ],
    ids=["no other try", "the next run", "another request", "the next of two", "the task's next attempt"],
)
def test_what_is_no_other_try_of_the_sinks_is_refused_once(after: list[dict[str, Any]], trace: int) -> None:
    assert found(*after, trace=trace) == []


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (REFUSED, True),
        (REFUSED.replace("before", "after", 1), False),
        (REFUSED.replace("answer(FORBIDDEN)", "drop"), False),
        (f"batch.commit:before[batch=1] -> kill(driver); {REFUSED}", False),
    ],
)
def test_only_a_request_that_was_not_done_is_refused_again(text: str, is_one: bool) -> None:
    at = Step("request", "after" if ":after" in text else "before")
    assert is_refused(SweepPoint(at, "x", "middle", 1, parse(text))) is is_one
