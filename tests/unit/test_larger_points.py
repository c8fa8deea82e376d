"""A batch of many rows as a point: the driver dies behind the first piece of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from onceproof.harness.certification.points import Question, Space
from onceproof.harness.certification.results import PointResult
from onceproof.harness.certification.scope import scope_of
from onceproof.harness.certification.space import select, space_of
from onceproof.harness.certification.strikes.larger import WITHOUT_A_FAULT, has_larger, tried_without_a_fault

BEHIND_THE_BATCH = "; batch.commit:before[batch=0] -> kill(driver)"

OF_BATCH = {"edge": "before", "run": "r", "event": "point", "process": "p", "thread": "1"}


def asked(kind: str, batch: int = 0, service: str = "postgres") -> dict[str, Any]:
    return {**OF_BATCH, "phase": "request", "batch": batch, "service": service, "kind": kind}


def changed(op: str, path: str, batch: int = 0) -> list[dict[str, Any]]:
    change = {**OF_BATCH, "phase": "file", "batch": batch, "op": op, "path": path}
    return [change, {**change, "edge": "after"}]


def space(trace: list[dict[str, Any]], batches: int | None = 5) -> Space:
    return space_of(Question(trace=trace, roles={"first": 0, "middle": 1}, refusal=lambda plan: None, batches=batches))


asked_for_once = asked("INSERT")


def texts(trace: list[dict[str, Any]], batches: int | None = 5) -> list[str]:
    return [point.text for point in space(trace, batches).points if point.role == "large"]


def test_the_driver_dies_behind_the_first_request_of_each_kind_in_a_large_batch() -> None:
    trace = [asked("INSERT"), asked("INSERT"), asked("COMMIT"), asked("DELETE", batch=1)]
    assert texts(trace) == [
        f"set batches = 1; set rows = 16000; request:after[service=postgres, kind={kind}, batch=0]#1 -> kill(driver)"
        f"{more}"
        for kind, more in (("INSERT", ""), ("COMMIT", ""), ("COMMIT", BEHIND_THE_BATCH))
    ]


def test_and_behind_the_first_change_of_each_kind_in_a_directory() -> None:
    trace = [event for number in range(2) for event in changed("create", f"target/{number}.jsonl")]
    trace += [*changed("rename", "target/0.jsonl"), *changed("create", "elsewhere/0.jsonl")]
    assert texts(trace) == [
        f'set batches = 1; set rows = 16000; file:after[op={op}, path="{directory}/*", batch=0]#1 -> kill(driver){more}'
        for op, directory, more in (
            ("create", "target", ""),
            ("rename", "target", ""),
            ("create", "elsewhere", ""),
            ("create", "elsewhere", BEHIND_THE_BATCH),
        )
    ]


def test_not_where_one_batch_is_asked_for_or_nothing_is_known_to_be_answered() -> None:
    assert texts([asked("INSERT")], batches=None) == []
    assert texts([asked("chunk", service="api")]) == []


def result(own_error: str | None = None) -> PointResult:
    verdict = "inconclusive" if own_error else "pass"
    return cast(PointResult, SimpleNamespace(own_error=own_error, verdict=verdict, reached=not own_error))


def test_a_large_batch_is_run_without_a_fault_before_its_points() -> None:
    asked = select(space([asked_for_once]), "request:after")
    assert has_larger(asked)
    assert not has_larger(select(space([asked_for_once]), "request:before"))
    assert tried_without_a_fault(asked, result()).points == (WITHOUT_A_FAULT, *asked.points)
    assert WITHOUT_A_FAULT.text == "set batches = 1; set rows = 16000"
    assert WITHOUT_A_FAULT.label == "without a fault, 16000 rows in one batch, large batch"


def test_what_the_sink_cannot_take_has_no_points_and_the_certificate_says_so() -> None:
    asked = select(space([asked_for_once]), "request:after")
    found = tried_without_a_fault(asked, result("sink s.py fails in batch 0 by itself: too many parameters"))
    assert [point.text for point in found.points] == [point.text for point in asked.points if point.role != "large"]
    assert len(found.points) == len(asked.points) - 2
    assert found.whole
    assert scope_of(found, found, {}, {}).summary.endswith(
        "not possible here: 16000 rows in one batch are more than it can take: "
        "sink s.py fails in batch 0 by itself: too many parameters"
    )
