"""Slow requests and a late recovery, as points: from what the trace recorded."""

from __future__ import annotations

from typing import Any

from onceproof.harness.certification.points import Question, SweepPoint
from onceproof.harness.certification.space import space_of

ROLES = {"first": 0, "middle": 1}


def reported(phase: str, edge: str = "before", **fields: Any) -> dict[str, Any]:
    return {"event": "point", "t": 0.0, "phase": phase, "edge": edge, "run": "run-1", **fields}


def batch(number: int, *kinds: str) -> list[dict[str, Any]]:
    requests = [reported("request", service="redis", kind=kind, text=kind, batch=number) for kind in kinds]
    return [reported("sink.write", batch=number), *requests, reported("batch.commit", batch=number)]


def points(trace: list[dict[str, Any]], **more: Any) -> list[SweepPoint]:
    found: dict[str, Any] = {"roles": ROLES, "refusal": lambda plan: None, **more}
    return list(space_of(Question(trace=trace, **found)).points)


TRACE = batch(0, "HSET", "HSET", "EXEC") + batch(1, "HSET", "EXEC")


def slow(trace: list[dict[str, Any]]) -> list[SweepPoint]:
    return [one for one in points(trace) if one.action == "delay(16s)" or "until the next batch" in one.detail]


def test_the_first_request_of_each_kind_is_slow_on_its_way_out_and_on_its_way_back() -> None:
    found = slow(TRACE)
    assert [one.text for one in found] == [
        "request:before[service=redis, kind=HSET, batch=0]#1 -> delay(longest=20s) until sink.write:before[batch=1]",
        "request:after[service=redis, kind=HSET, batch=0]#1 -> delay(16s)",
        "request:before[service=redis, kind=EXEC, batch=0]#1 -> delay(longest=20s) "
        "until request:after[service=redis, kind=HSET, batch=1]#1",
        "request:before[service=redis, kind=EXEC, batch=0]#1 -> delay(longest=20s) "
        "until request:after[service=redis, kind=HSET, batch=1]#1; "
        "request:before[service=redis, kind=EXEC, batch=1]#1 -> kill(driver)",
        "request:after[service=redis, kind=EXEC, batch=1]#1 -> delay(16s)",
    ]
    assert [one.alone for one in found] == [True, False, True, True, False], "what it does is seen in another batch"


def test_of_a_service_of_the_users_own_each_path_is_a_kind() -> None:
    def asked(number: int) -> list[dict[str, Any]]:
        paths = [f"/batches/{number}", f"/batches/{number}/rows", f"/batches/{number}/rows"]
        posts = [reported("request", service="api", kind="POST", text=f"POST {path}", batch=number) for path in paths]
        return [reported("sink.write", batch=number), *posts, reported("batch.commit", batch=number)]

    found = [one.text for one in slow(asked(0) + asked(1)) if "delay(16s)" in one.text]
    assert found == [f"request:after[service=api, kind=POST, batch=1]#{nth} -> delay(16s)" for nth in (1, 2)]


def test_the_first_request_of_each_kind_is_late_until_its_client_has_come_as_far_again() -> None:
    anew = [one for one in points(TRACE) if "until it is begun anew" in one.detail]
    assert [one.text for one in anew] == [
        "request:before[service=redis, kind=HSET, batch=1]#1 -> delay(longest=20s) "
        "until request:before[service=redis, kind=HSET, batch=1]#1",
        "request:before[service=redis, kind=EXEC, batch=1]#1 -> delay(longest=20s) "
        "until request:after[service=redis, kind=HSET, batch=1]#1",
    ], "the first batch asks for HSET twice, the middle one once"
    assert all(one.alone for one in anew)


def test_what_other_processes_ask_for_meanwhile_is_no_second_try() -> None:
    both = [one for kind in ("HSET", "EXEC") for one in (asked(kind, "worker 1"), asked(kind, "worker 2"))]
    (hset, execute) = [one for one in points(both) if "until it is begun anew" in one.detail]
    assert hset.text.endswith("until request:before[service=redis, kind=HSET, batch=0]#2")
    assert execute.text.endswith("until request:after[service=redis, kind=HSET, batch=0]#1")


def asked(kind: str, process: str) -> dict[str, Any]:
    return reported("request", service="redis", kind=kind, text=kind, batch=0, process=process)


def test_what_may_be_refused_for_the_moment_does_not_say_that_a_client_has_come_as_far_again() -> None:
    """A coordinator refuses partitions until it has ended the transaction before."""
    trace = [{**event, "service": "kafka"} for event in batch(1, "AddPartitionsToTxn", "Produce", "EndTxn")]
    anew = [one.text.partition(" until ")[2] for one in points(trace) if "until it is begun anew" in one.detail]
    assert anew == [
        "request:before[service=kafka, kind=AddPartitionsToTxn, batch=1]#1",
        "request:before[service=kafka, kind=Produce, batch=1]#1",
        "request:after[service=kafka, kind=Produce, batch=1]#1",
    ]


def test_the_last_batch_has_none_that_its_request_could_be_late_for() -> None:
    (text, *_) = [one.text for one in slow(batch(1, "EXEC"))]
    assert text == "request:before[service=redis, kind=EXEC, batch=1]#1 -> delay(16s)"


def test_a_request_is_late_for_as_long_as_its_client_waits_by_itself() -> None:
    trace = [{**event, "service": "kafka"} for event in batch(0, "Produce", "EndTxn") + batch(1, "Produce", "EndTxn")]
    assert [one.text for one in slow(trace) if "EndTxn" in one.text and one.alone and "kill" not in one.text] == [
        "request:before[service=kafka, kind=EndTxn, batch=0]#1 -> delay(longest=65s) "
        "until request:after[service=kafka, kind=Produce, batch=1]#1"
    ]


def test_services_are_slow_in_one_replay() -> None:
    (slow,) = [one for one in points(TRACE) if one.action.startswith("latency")]
    assert slow.text == (
        "batch.commit:before[batch=1] -> kill(driver); sink.write:before[batch=1]#2 -> latency(1s, for=25s)"
    )
    assert slow.alone, "it is slow in the batches that follow, too"
    unasked = [one for one in TRACE if one["phase"] != "request"]
    assert not [one for one in points(unasked) if one.action.startswith("latency")]


def test_a_driver_comes_back_after_more_than_a_minute_where_its_batch_is_half_done_and_where_it_is_done() -> None:
    late = [one for one in points(TRACE) if "back after" in one.detail]
    assert [one.text.removesuffix(" -> kill(driver) then restart(driver, after=75s)") for one in late] == [
        "batch.commit:before[batch=1]",
        "request:before[service=redis, kind=EXEC, batch=1]#1",
    ]
    assert all(one.alone for one in late)


def test_it_comes_back_late_before_what_gives_a_file_its_name_too() -> None:
    changes = [
        reported("file", edge, op=op, path=f"target/{path}", batch=1)
        for op, path in (("create", "draft"), ("sync", "draft"), ("link", "decided"), ("rename", "final"))
        for edge in ("before", "after")
    ]
    late = [one.text for one in points([reported("sink.write", batch=1), *changes]) if "back after" in one.detail]
    assert late == [
        f'file:before[op={op}, path="target/{path}", batch=1]#1 -> kill(driver) then restart(driver, after=75s)'
        for op, path in (("link", "decided"), ("rename", "final"))
    ]


def test_a_profile_of_steps_alone_has_neither() -> None:
    found = points(TRACE, profile="quick")
    assert not [one for one in found if "delay" in one.action or "back after" in one.detail]
