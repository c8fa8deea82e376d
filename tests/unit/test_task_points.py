"""Points of sinks whose tasks write: more tasks than ten, and a second attempt that is cut short."""

from __future__ import annotations

from typing import Any

from onceproof.harness.certification.points import Question, SweepPoint
from onceproof.harness.certification.space import space_of

TASK = {"stage": 1, "partition": 0, "attempt": 0}


def reported(phase: str, edge: str | None = "before", **fields: Any) -> dict[str, Any]:
    edges = {} if edge is None else {"edge": edge}
    return {"event": "point", "t": 0.0, "phase": phase, "batch": 1, "run": "run-1", **edges, **fields}


def both(phase: str, **fields: Any) -> list[dict[str, Any]]:
    return [reported(phase, edge, **fields) for edge in ("before", "after")]


def batch(*of_a_task: dict[str, Any], of_the_driver: tuple[dict[str, Any], ...] = ()) -> list[dict[str, Any]]:
    begun, ended = both("task.run", **TASK)
    return [reported("sink.write"), begun, *of_a_task, ended, *of_the_driver, reported("batch.commit")]


def points(trace: list[dict[str, Any]], detail: str, **more: Any) -> list[SweepPoint]:
    asked: dict[str, Any] = {"roles": {"middle": 1}, "refusal": lambda plan: None, "batches": 5, **more}
    return [one for one in space_of(Question(trace=trace, **asked)).points if detail in one.detail]


INSERTS = both("request", service="postgres", kind="INSERT", text="INSERT")
IN_A_TASK = [one | TASK for one in INSERTS]
CREATES = [one | TASK for one in both("file", op="create", path="target/2-0-0.jsonl")]


def test_the_driver_dies_in_a_batch_of_twelve_tasks_where_tasks_write() -> None:
    found = points(batch(*IN_A_TASK), "12 tasks")
    twelve = "set partitions = 12; set spark.sql.shuffle.partitions = 12"
    assert [one.text for one in found] == [
        f"{twelve}; task.run:after[batch=1, stage=1, partition=0]#1 -> kill(driver)",
        f"{twelve}; task.run:after[batch=1, stage=1, partition=10]#1 -> kill(driver)",
        f"{twelve}; batch.commit:before[batch=1] -> kill(driver)",
    ]
    assert len({one.way for one in found} - {""}) == 1, "tasks of the sink's own number may have no such one"
    line = reported("line", None, file="s.py", line=7, role="python-worker")
    for own in (INSERTS, [line], both("task.commit", **TASK)):
        assert [one.text for one in points(batch(*own), "12 tasks")] == [one.text for one in found]
    assert points(batch(of_the_driver=tuple(INSERTS)), "12 tasks") == []
    assert points(batch(*IN_A_TASK), "12 tasks", batches=None) == []


def test_the_driver_dies_behind_the_first_change_of_a_tasks_second_attempt() -> None:
    before = tuple(INSERTS)
    first, second = ([*both("task.run", stage=1, partition=task)] for task in (0, 1))
    trace = [*before, first[0], second[0], *IN_A_TASK, *CREATES, first[1], *IN_A_TASK, second[1], *INSERTS]
    found = points([reported("sink.write"), *trace, reported("batch.commit")], "of its next attempt")
    failed = "task.run:after[batch=1, stage=1]#2 -> fail"
    assert [one.text for one in found] == [
        f"{failed}; request:after[service=postgres, kind=INSERT, batch=1]#4 -> kill(driver)",
        f'{failed}; file:after[op=create, path="target/*", batch=1]#2 -> kill(driver)',
    ]
    assert points(batch(of_the_driver=before), "of its next attempt") == []
