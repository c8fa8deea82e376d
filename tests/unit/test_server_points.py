"""Crashes of the targets' servers, as points: where they strike, from what the trace recorded."""

from __future__ import annotations

from typing import Any

from onceproof.harness.certification.packing import packs
from onceproof.harness.certification.points import Question, SweepPoint
from onceproof.harness.certification.space import space_of

ROLES = {"first": 0, "middle": 1}


def reported(phase: str, edge: str = "before", **fields: Any) -> dict[str, Any]:
    return {"event": "point", "t": 0.0, "phase": phase, "edge": edge, "run": "run-1", **fields}


def batch(number: int, *kinds: str) -> list[dict[str, Any]]:
    requests = [reported("request", service="redis", kind=kind, text=kind, batch=number) for kind in kinds]
    return [reported("sink.write", batch=number), *requests, reported("batch.commit", "after", batch=number)]


def crashes(trace: list[dict[str, Any]], **more: Any) -> list[SweepPoint]:
    found: dict[str, Any] = {"roles": ROLES, "refusal": lambda plan: None, "servers": ["redis"], **more}
    space = space_of(Question(trace=trace, **found))
    return [one for one in space.points if one.action == "kill(redis)"]


TRACE = batch(0, "SET", "HSET", "SET") + batch(1, "SET", "HSET", "SET")


def test_a_server_dies_around_the_hand_over_before_each_kind_of_request_and_behind_the_last_one() -> None:
    assert [one.text for one in crashes(TRACE)] == [
        "sink.write:before[batch=0] -> kill(redis)",
        "batch.commit:after[batch=1] -> kill(redis)",
        "request:before[service=redis, kind=SET, batch=0]#1 -> kill(redis)",
        "request:before[service=redis, kind=HSET, batch=1]#1 -> kill(redis)",
        "request:after[service=redis, kind=SET, batch=0]#2 -> kill(redis)",
    ]


def in_task(number: int, *kinds: str, **of_task: Any) -> list[dict[str, Any]]:
    """A batch whose one task asks for something, and then the driver."""
    begun, ended = (reported("task.run", edge, batch=number, stage=1, partition=0) for edge in ("before", "after"))
    first, *found = batch(number, *kinds)
    return [first, begun, found[0], ended, *found[1:]]


def test_a_server_dies_between_the_tasks_and_the_driver_that_go_on_without_a_connection_meanwhile() -> None:
    trace = in_task(0, "SET", "HSET") + in_task(1, "SET", "HSET")
    (found,) = (one for one in crashes(trace) if one.detail == "of the last task")
    assert found.text == "task.run:after[batch=0, stage=1]#1 -> kill(redis)"
    committed = [reported("sink.commit", batch=number) for number in (0, 1)]
    texts = [one.text for one in crashes([*trace, *committed]) if one.step in ("task.run:after", "sink.commit:before")]
    assert texts == ["sink.commit:before[batch=1] -> kill(redis)"]


def test_nothing_else_runs_meanwhile_but_a_run_has_several_of_them() -> None:
    driver = [one for one in space_of(Question(TRACE, ROLES, lambda plan: None)).points if not one.alone]
    found = [pack for pack in packs([*driver, *crashes(TRACE)], 8) if pack.exclusive]
    assert all(point.action == "kill(redis)" for pack in found for point in pack.points)
    assert max(len(pack.points) for pack in found) == 2


def test_a_sink_without_a_server_and_a_profile_of_steps_alone_have_none() -> None:
    assert not crashes(TRACE, servers=[])
    assert not crashes(TRACE, profile="quick")
