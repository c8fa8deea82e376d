"""The points of a sweep follow from a reference trace."""

from __future__ import annotations

from typing import Any

from onceproof.harness.points import sweep


def point(phase: str, edge: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"event": "point", "t": 0.0, "phase": phase, **({"edge": edge} if edge else {}), **fields}


TRACE = [
    point("query.start", "before"),
    point("sink.write", "before", batch=0),
    point("line", file="s.py", line=7, batch=0),
    point("sink.write", "before", batch=1),
    point("task.run", "before", batch=1, stage=2, partition=0),
    point("task.run", "before", batch=1, stage=2, partition=1),
    *(point("line", file="s.py", line=7, batch=1) for _ in range(5)),
    point("line", file="s.py", line=9, batch=1),
    point("sink.write", "after", batch=1),
    {"event": "driver.exited", "t": 1.0},
]


def test_each_phase_is_swept_once_at_the_chosen_batch() -> None:
    assert [one.text for one in sweep(TRACE, 1, "phases")] == [
        "query.start:before -> kill(driver)",
        "sink.write:before[batch=1] -> kill(driver)",
        "task.run:before[batch=1] -> kill(driver)",
        "sink.write:after[batch=1] -> kill(driver)",
        "task.run:after[batch=1]#1 -> kill(driver) with hold(task.run:before[batch=1]#2)",
    ]


def test_a_line_is_swept_at_its_first_second_and_last_execution_with_kill_and_fail() -> None:
    assert [one.text for one in sweep(TRACE, 1, "lines")] == [
        f"line[s.py:{line}][batch=1]#{nth} -> {action}"
        for line, nth in [(7, 1), (7, 2), (7, 5), (9, 1)]
        for action in ("kill(driver)", "fail")
    ]


def test_a_batch_with_one_task_has_no_point_with_one_task_alone() -> None:
    single = [event for event in TRACE if event.get("partition") != 1]
    assert not [one for one in sweep(single, 1, "phases") if "hold" in one.text]


def stage(number: int, tasks: int) -> list[dict[str, Any]]:
    """All tasks of a stage begin, then all end."""
    return [
        point("task.run", edge, batch=1, stage=number, partition=task)
        for edge in ("before", "after")
        for task in range(tasks)
    ]


def alone(trace: list[dict[str, Any]]) -> list[str]:
    return [one.text for one in sweep(trace, 1, "phases") if "hold" in one.text]


def test_each_stage_of_a_batch_is_swept_with_one_task_alone() -> None:
    assert alone([*stage(4, 3), *stage(5, 1), *stage(6, 2)]) == [
        "task.run:after[batch=1]#1 -> kill(driver) with hold(task.run:before[batch=1]#2)",
        "task.run:after[batch=1]#5 -> kill(driver) with hold(task.run:before[batch=1]#6)",
    ]


def test_a_stage_that_begins_while_another_one_runs_has_no_point_with_one_task_alone() -> None:
    one, other = stage(4, 2), stage(5, 2)
    assert alone([*one[:2], *other, *one[2:]]) == [
        "task.run:after[batch=1]#1 -> kill(driver) with hold(task.run:before[batch=1]#2)"
    ]


def test_all_are_the_phases_and_the_lines() -> None:
    assert len(sweep(TRACE, 1)) == len(sweep(TRACE, 1, "phases")) + len(sweep(TRACE, 1, "lines"))
