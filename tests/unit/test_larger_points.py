"""A batch of many rows as a point: the driver dies behind the first piece of it."""

from __future__ import annotations

from typing import Any

from onceproof.harness.certification.points import Question
from onceproof.harness.certification.space import space_of

OF_BATCH = {"edge": "before", "run": "r", "event": "point", "process": "p", "thread": "1"}


def asked(kind: str, batch: int = 0, service: str = "postgres") -> dict[str, Any]:
    return {**OF_BATCH, "phase": "request", "batch": batch, "service": service, "kind": kind}


def changed(op: str, path: str, batch: int = 0) -> dict[str, Any]:
    return {**OF_BATCH, "phase": "file", "batch": batch, "op": op, "path": path}


def texts(trace: list[dict[str, Any]], batches: int | None = 5) -> list[str]:
    question = Question(trace=trace, roles={"first": 0, "middle": 1}, refusal=lambda plan: None, batches=batches)
    return [point.text for point in space_of(question).points if point.role == "large"]


def test_the_driver_dies_behind_the_first_request_of_each_kind_in_a_large_batch() -> None:
    trace = [asked("INSERT"), asked("INSERT"), asked("COMMIT"), asked("DELETE", batch=1)]
    assert texts(trace) == [
        f"set batches = 1; set rows = 16000; request:after[service=postgres, kind={kind}, batch=0]#1 -> kill(driver)"
        for kind in ("INSERT", "COMMIT")
    ]


def test_and_behind_the_first_change_of_each_kind_in_a_directory() -> None:
    trace = [changed("create", f"target/{number}.jsonl") for number in range(2)]
    trace += [changed("rename", "target/0.jsonl"), changed("create", "elsewhere/0.jsonl")]
    assert texts(trace) == [
        f'set batches = 1; set rows = 16000; file:after[op={op}, path="{directory}/*", batch=0]#1 -> kill(driver)'
        for op, directory in (("create", "target"), ("rename", "target"), ("create", "elsewhere"))
    ]


def test_not_where_one_batch_is_asked_for_or_nothing_is_known_to_be_answered() -> None:
    assert texts([asked("INSERT")], batches=None) == []
    assert texts([asked("chunk", service="api")]) == []
