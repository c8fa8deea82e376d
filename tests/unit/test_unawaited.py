"""Changes that a sink may not wait for, as points: which of them are kept back, from what the trace recorded."""

from __future__ import annotations

from typing import Any

from onceproof.harness.certification.points import Question, SweepPoint
from onceproof.harness.certification.space import space_of

ROLES = {"first": 0, "middle": 1, "last": 2}
END = " -> delay(longest=2s) until sink.write:before[batch=2]; batch.commit:after[batch=1] -> kill(driver)"


def reported(phase: str, **fields: Any) -> dict[str, Any]:
    return {"event": "point", "t": 0.0, "phase": phase, "edge": "before", "run": "run-1", **fields}


def handed_over(batch: int) -> dict[str, Any]:
    return reported("sink.write", batch=batch)


def asked(*kinds: str, **fields: Any) -> list[dict[str, Any]]:
    return [reported("request", service="redis", kind=kind, text=kind, **fields) for kind in kinds]


def kept_back(*trace: dict[str, Any], **more: Any) -> list[SweepPoint]:
    found: dict[str, Any] = {"roles": ROLES, "refusal": lambda plan: None, **more}
    return [one for one in space_of(Question(trace=trace, **found)).points if "kept back" in one.detail]


def test_the_first_request_of_each_kind_behind_the_hand_over_is_kept_back_by_its_number_in_the_run() -> None:
    before = [handed_over(0), *asked("HSET", "HSET", batch=0), *asked("DEL"), handed_over(1)]
    found = kept_back(*before, *asked("HSET", "HSET", "EXPIRE", batch=1), handed_over(2), *asked("HSET", batch=2))
    assert [one.text for one in found] == [
        f"request:before[service=redis, kind={kind}]#{nth}{END}" for kind, nth in (("HSET", 3), ("EXPIRE", 1))
    ]
    assert all(one.alone and one.batch == 1 for one in found), "its number is that of a run without other faults"


def test_a_request_that_comes_when_its_batch_is_over_is_kept_back_too() -> None:
    found = kept_back(handed_over(0), *asked("HSET"), handed_over(1), handed_over(2), *asked("HSET", batch=2))
    assert [one.text for one in found] == [f"request:before[service=redis, kind=HSET]#2{END}"]


def test_changes_of_files_are_kept_back_by_their_operation() -> None:
    files = [reported("file", op=op, path=f"target/{op}", batch=1) for op in ("create", "rename", "create")]
    assert [one.text for one in kept_back(handed_over(1), *files)] == [
        f"file:before[op={op}]#1{END}" for op in ("create", "rename")
    ]


def test_a_sink_that_has_no_requests_and_a_profile_of_steps_alone_have_none() -> None:
    trace = [handed_over(1), *asked("HSET", batch=1)]
    assert not kept_back(*trace, phases=frozenset({"sink.write"}))
    assert not kept_back(*trace, profile="quick")
