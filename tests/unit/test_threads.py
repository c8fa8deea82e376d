"""Requests of several threads at once, as points: which one is lost and which one late, as the trace recorded them."""

from __future__ import annotations

from typing import Any

from onceproof.harness.certification.points import Question, SweepPoint
from onceproof.harness.certification.space import space_of

PLACE = "request:before[service=postgres, kind={kind}, batch=1]#{nth}"


def asked(text: str, role: str = "python-client") -> list[dict[str, Any]]:
    """``a1 b2``: kind a by connection 1, then kind b by connection 2."""
    return [
        {
            "event": "point", "t": 0.0, "phase": "request", "edge": "before", "run": "r", "batch": 1, "role": role,
            "process": "local:7", "service": "postgres", "kind": kind, "text": kind, "thread": f"postgres {connection}",
        }
        for kind, connection in text.split()
    ]  # fmt: skip


def late(trace: list[dict[str, Any]], **more: Any) -> list[SweepPoint]:
    question = Question(trace, {"middle": 1}, lambda plan: None, **({"reference_job": True} | more))
    return [one for one in space_of(question).points if one.detail.endswith("late by another")]


def test_the_first_of_one_thread_is_lost_and_the_first_of_another_waits_for_the_second_run() -> None:
    found = late(asked("a1 a2 b1 b2 a3 b3"))
    assert [one.text for one in found] == [
        f"set starts = 4; {PLACE.format(kind=kind, nth=1)} -> drop; "
        f"{PLACE.format(kind=kind, nth=2)} -> delay(longest=20s) until {PLACE.format(kind=kind, nth=4)}"
        for kind in "ab"
    ]
    assert all(one.alone and one.seen_once for one in found)


def test_connections_that_follow_one_another_are_not_at_once() -> None:
    assert late(asked("a1 b1 a2 b2")) == []
    assert late(asked("c0 a1 a1 b1 c0 a2 b2")) == []


def test_a_kind_is_asked_for_by_two_threads_whose_connections_are_open_together() -> None:
    (found,) = late(asked("a1 b2 a3 b3 b2"))
    assert PLACE.format(kind="b", nth=1) in found.text
    assert PLACE.format(kind="b", nth=2) in found.text


def test_neither_tasks_nor_a_job_of_the_users_own_are_asked() -> None:
    both = "a1 a2 b1 b2"
    assert late(asked(both, role="driver")) == late(asked(both, role="python-worker")) == []
    assert late(asked(both), reference_job=False) == []
