"""Requests from several threads, as points: which one is lost and which one is late, as the trace recorded them."""

from __future__ import annotations

from typing import Any

from onceproof.harness.certification.points import Question, SweepPoint
from onceproof.harness.certification.space import space_of

AGAIN = "set starts = 4; "
OF_BOTH = ("pool-0", "pool-1")


def reported(phase: str, role: str, process: str = "local:7", **fields: Any) -> dict[str, Any]:
    of = {"run": "r", "batch": 1, "role": role, "process": process}
    return {"event": "point", "t": 0.0, "phase": phase} | of | fields


def line(thread: str, role: str = "python-driver") -> dict[str, Any]:
    return reported("line", role, file="s.py", line=3, thread=thread)


def asked(text: str) -> list[dict[str, Any]]:
    """``a1 b2``: kind a by connection 1, then kind b by connection 2."""
    sent = {"edge": "before", "service": "postgres"}
    return [
        reported("request", "python-client", kind=kind, text=kind, thread=f"pg {connection}", **sent)
        for kind, connection in text.split()
    ]


def late(text: str, threads: tuple[str, ...] = OF_BOTH, role: str = "python-driver", **more: Any) -> list[SweepPoint]:
    trace = [*(line(thread, role) for thread in threads), *asked(text)]
    question = Question(trace, {"middle": 1}, lambda plan: None, **({"reference_job": True} | more))
    return [one for one in space_of(question).points if one.detail.endswith("of another thread late")]


def plan(kind: str, lost: int, late: int, until: int) -> str:
    where = f"service=postgres, kind={kind}, batch=1"
    kept = f"request:before[{where}, run=1]#{late} -> delay(longest=20s) until request:before[{where}]#{until}"
    waits = f"request:before[{where}]#{until + late} -> delay(2s)"
    return f"{AGAIN}request:before[{where}]#{lost} -> drop; {kept}; {waits}"


def test_the_first_is_lost_and_one_behind_as_many_as_are_sent_at_once_waits_for_the_second_try() -> None:
    found = late("a1 a2 b1 b2 a3 b3")
    assert [one.text for one in found] == [plan("a", 1, 3, 1), plan("b", 1, 3, 1)]
    assert all(one.alone and one.seen_once for one in found)
    assert found[0].detail == "a 1 to postgres lost, a 3 to postgres of another thread late"


def test_of_two_requests_in_all_the_late_one_waits_for_the_first_of_the_second_try() -> None:
    (found,) = late("a1 a2 c1 d2")
    assert found.text == plan("a", 1, 2, 1), "the count of an until begins with the delay"


def test_connections_that_follow_one_another_are_not_of_several_threads() -> None:
    assert late("a1 b1 a2 b2") == []


def test_a_kind_is_sent_by_two_connections_that_are_open_together() -> None:
    (found,) = late("a1 b2 a3 b3 b2")
    assert found.text == plan("b", 1, 3, 1)


def test_one_thread_with_two_connections_is_none_of_several() -> None:
    assert late("a0 a1 b1 b0", threads=("Thread-4",)) == []


def test_neither_tasks_nor_a_job_of_the_users_own_are_asked() -> None:
    assert late("a1 a2 b1 b2", role="python-worker") == []
    assert late("a1 a2 b1 b2", reference_job=False) == []
