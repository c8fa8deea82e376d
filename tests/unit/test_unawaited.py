"""Changes that a sink may not wait for, as points: which of them are kept back, from what the trace recorded."""

from __future__ import annotations

from typing import Any

from onceproof.harness.certification.points import Question, SweepPoint
from onceproof.harness.certification.space import space_of

ROLES = {"first": 0, "middle": 1, "last": 2}


def kept(change: str, batch: int) -> str:
    next_one, done = f"sink.write:before[batch={batch + 1}]", f"batch.commit:after[batch={batch}]"
    return f"{change} -> delay(longest=20s) until {next_one}; {done} -> kill(driver)"


def reported(phase: str, **fields: Any) -> dict[str, Any]:
    return {"event": "point", "t": 0.0, "phase": phase, "edge": "before", "run": "run-1", **fields}


def handed_over(batch: int) -> dict[str, Any]:
    return reported("sink.write", batch=batch)


def asked(*kinds: str, **fields: Any) -> list[dict[str, Any]]:
    return [reported("request", service="redis", kind=kind, text=kind, **fields) for kind in kinds]


def kept_back(*trace: dict[str, Any], **more: Any) -> list[SweepPoint]:
    found: dict[str, Any] = {"roles": ROLES, "refusal": lambda plan: None, **more}
    return [one for one in space_of(Question(trace=trace, **found)).points if "kept back" in one.detail]


def test_the_first_request_of_each_kind_in_the_middle_batch_is_kept_back() -> None:
    found = kept_back(handed_over(1), *asked("HSET", "HSET", "EXPIRE", batch=1))
    assert [one.text for one in found] == [
        kept(f"request:before[service=redis, kind={kind}, batch=1]#1", 1) for kind in ("HSET", "EXPIRE")
    ]
    assert not any(one.alone for one in found)


def test_one_that_comes_when_no_batch_is_under_way_is_kept_back_by_its_number_in_the_run() -> None:
    trace = [*asked("HSET", when="start"), handed_over(0), *asked("HSET"), handed_over(1), *asked("HSET")]
    (found,) = kept_back(*trace)
    assert found.text == kept("request:before[service=redis, kind=HSET]#1", 0), "that of the start is not counted"
    assert found.alone, "other faults of a run would change its number"


def test_one_that_not_both_traces_have_in_the_middle_batch_is_addressed_by_its_number() -> None:
    first_run = [handed_over(1), *asked("DEL", batch=1)]
    (found,) = kept_back(
        handed_over(0), *asked("HSET", batch=0), handed_over(1), *asked("HSET", batch=1), replay=first_run
    )
    assert found.text.startswith("request:before[service=redis, kind=HSET]#1 -> delay")


def test_changes_of_files_are_kept_back_by_their_operation() -> None:
    files = [reported("file", op=op, path=f"target/{op}", batch=1) for op in ("create", "rename", "create")]
    found = [one.text for one in kept_back(handed_over(1), *files)]
    assert found == [kept(f"file:before[op={op}, batch=1]#1", 1) for op in ("create", "rename")]


def test_a_sink_that_has_no_requests_and_a_profile_of_steps_alone_have_none() -> None:
    trace = [handed_over(1), *asked("HSET", batch=1)]
    assert not kept_back(*trace, phases=frozenset({"sink.write"}))
    assert not kept_back(*trace, profile="quick")
