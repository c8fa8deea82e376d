"""Tasks whose executors are given up, and wake up, as points: before what the trace has seen them do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onceproof.faults import Plan, format_plan, parse
from onceproof.harness.certification.points import Question, SweepPoint
from onceproof.harness.certification.space import space_of

HEAD = (
    "set master = standalone; "
    'set spark.executor.heartbeatInterval = "1s"; set spark.network.timeoutInterval = "2s"; '
    'set spark.storage.blockManagerHeartbeatTimeoutMs = "6s"; '
)
ROLES = {"first": 0, "second": 1, "middle": 2}


def reported(phase: str, batch: int, edge: str = "before", **fields: Any) -> dict[str, Any]:
    return {"event": "point", "t": 0.0, "phase": phase, "edge": edge, "batch": batch, "run": "r", **fields}


def asked(batch: int, *kinds: str, thread: str) -> Iterator[dict[str, Any]]:
    for kind in kinds:
        for edge in ("before", "after"):
            by = {"thread": thread, "process": "local:7", "role": "python-client"}
            yield reported("request", batch, edge, service="postgres", kind=kind, text=kind, **by)


def tasks(batch: int, *of_each: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """One after the other; each with a connection of its own."""
    for partition, kinds in enumerate(of_each):
        of_task = {"stage": 1, "partition": partition, "attempt": 0, "role": "executor", "process": "local:5"}
        yield reported("task.run", batch, **of_task)
        yield from asked(batch, *kinds, thread=f"postgres {partition}")
        yield reported("task.run", batch, "after", **of_task)


ONE = (("INSERT", "COMMIT"), ("DELETE", "INSERT", "INSERT", "COMMIT"), ("COMMIT",))
TRACE = [event for batch in (0, 1, 2) for event in (*tasks(batch, *ONE), *asked(batch, "UPDATE", thread="driver"))]


def lost(trace: list[dict[str, Any]], **more: Any) -> list[SweepPoint]:
    question = Question(trace, **({"roles": ROLES, "refusal": lambda plan: None, "reference_job": True} | more))
    return [one for one in space_of(question).points if one.action == "pause(executor)"]


def at(kind: str, nth: int) -> str:
    where = f"service=postgres, kind={kind}, batch=1, stage=1, attempt=0"
    return f"{HEAD}request:before[{where}]#{nth} -> pause(executor, longest=40s) until "


AGAIN = "task.run:after[batch=1, stage=1, attempt=1]"
BESIDE = f"{AGAIN}; {AGAIN} -> delay(5s)"
BEHIND = "batch.commit:after[batch=1]; sink.write:before[batch=2] -> delay(5s)"


def test_the_task_that_asks_for_most_is_lost_in_its_midst_and_before_its_last_request() -> None:
    found = lost(TRACE)
    assert [one.text for one in found] == [at("INSERT", 3) + BESIDE, at("COMMIT", 2) + BESIDE, at("COMMIT", 2) + BEHIND]
    assert all(format_plan(parse(one.text)) == one.text and one.exclusive for one in found)


def test_a_task_that_asks_once_is_lost_there_in_both_ways() -> None:
    trace = [event for batch in (0, 1, 2) for event in tasks(batch, ("COMMIT",))]
    assert [one.text for one in lost(trace)] == [at("COMMIT", 1) + BESIDE, at("COMMIT", 1) + BEHIND]


def test_a_job_of_a_user_s_may_have_its_master_in_its_code() -> None:
    assert lost(TRACE, reference_job=False) == []


def test_what_the_driver_asks_for_is_no_task_s() -> None:
    of_driver = [event for batch in (0, 1, 2) for event in (*tasks(batch, ()), *asked(batch, "SET", thread="driver"))]
    assert lost(of_driver) == []


def test_where_no_small_batch_is_swept_or_no_cluster_is_there_the_certificate_says_so() -> None:
    def gaps(**more: Any) -> list[str]:
        question = Question(TRACE, **({"roles": ROLES, "refusal": lambda plan: None, "reference_job": True} | more))
        return [gap.reason for gap in space_of(question).impossible if gap.action == "pause(executor)"]

    def refused(plan: Plan) -> str | None:
        return "no cluster" if "master" in plan.settings else None

    assert gaps(roles={"middle": 2}) == ["neither of the first two batches is swept and followed"]
    assert set(gaps(refusal=refused)) == {"no cluster"}
