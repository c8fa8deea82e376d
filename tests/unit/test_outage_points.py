"""Services that cannot be reached for longer than their clients try, as points: from what the trace recorded."""

from __future__ import annotations

from typing import Any

from onceproof.harness.certification.points import Question
from onceproof.harness.certification.space import space_of

ROLES = {"first": 0, "middle": 1}


def asked(service: str, kind: str, batch: int) -> dict[str, Any]:
    of_batch = {"phase": "request", "edge": "before", "batch": batch, "run": "r", "event": "point"}
    return {**of_batch, "service": service, "kind": kind, "thread": f"{service} 1"}


def texts(trace: list[dict[str, Any]], **more: Any) -> list[str]:
    question = Question(trace=trace, roles=ROLES, refusal=lambda plan: None, **more)
    return [point.text for point in space_of(question).points if point.action == "down(for=40s)"]


def test_each_service_is_away_before_its_first_request_and_behind_its_last_one() -> None:
    own = [asked("postgres", "INSERT", 1), asked("redis", "SET", 1), asked("postgres", "INSERT", 1)]
    trace = [asked("postgres", "DELETE", 0), *own, asked("postgres", "COMMIT", 1)]
    assert texts(trace) == [
        "request:before[service=postgres, kind=INSERT, batch=1]#1 -> down(for=40s)",
        "request:after[service=postgres, kind=COMMIT, batch=1]#1 -> down(for=40s)",
        "request:before[service=redis, kind=SET, batch=1]#1 -> down(for=40s)",
        "request:after[service=redis, kind=SET, batch=1]#1 -> down(for=40s)",
    ]


def test_what_is_not_known_to_be_answered_has_no_point_behind_it() -> None:
    assert texts([asked("api", "chunk", 1)]) == ["request:before[service=api, kind=chunk, batch=1]#1 -> down(for=40s)"]


def test_a_disk_is_full_for_more_tries_than_one() -> None:
    changed = {
        "phase": "file",
        "edge": "before",
        "batch": 1,
        "run": "r",
        "event": "point",
        "process": "p",
        "thread": "1",
    }
    trace = [{**changed, "op": "create", "path": f"target/pending/{number}.jsonl"} for number in range(2)]
    question = Question(trace=trace, roles=ROLES, refusal=lambda plan: None)
    [full] = [point for point in space_of(question).points if "ENOSPC" in point.action]
    assert full.text == 'file:before[op=create, path="target/*", batch=1] -> fail(error=ENOSPC, times=6)'


def test_a_profile_of_steps_alone_has_none() -> None:
    assert texts([asked("redis", "SET", 1)], profile="quick") == []
