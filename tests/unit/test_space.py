"""The space of a sweep follows from the catalogue, a reference trace and a traced replay."""

from __future__ import annotations

import re
from typing import Any

import pytest
from onceproof.assertions import Workload
from onceproof.faults import Plan, Point, parse
from onceproof.harness.certification.packing import of_each_kind, packs
from onceproof.harness.certification.points import Code, Question, Space, SweepPoint, in_turn
from onceproof.harness.certification.roles import batch_roles
from onceproof.harness.certification.space import check_points, select, space_of
from onceproof.harness.certification.strikes.zombies_at_effects import AT_ONCE
from onceproof.harness.certification.trace import Line, Step
from onceproof.harness.errors import UsageError

ROLES = {"first": 0, "middle": 1, "last": 2}
FIRST_RUN, REPLAY = "run-1", "run-2"


def point(phase: str, edge: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"event": "point", "t": 0.0, "phase": phase, **({"edge": edge} if edge else {}), "run": FIRST_RUN, **fields}


def batch_of(number: int, stages: tuple[int, ...] = (2,), rows: tuple[int, ...] = ()) -> list[dict[str, Any]]:
    """A batch with so many tasks in each stage; the last stage asks for these rows and pre-commits."""
    found = [point("sink.write", "before", batch=number)]
    for stage, tasks in enumerate(stages, 1):
        for edge in ("before", "after"):
            found += [point("task.run", edge, batch=number, stage=stage, partition=task) for task in range(tasks)]
    writing = {"batch": number, "stage": len(stages), "partition": 0}
    found += [point("task.row", "before", row=row, **writing) for row in rows]
    return [*found, point("sink.write", "after", batch=number)]


def lines(batch: int, *executions: tuple[int, int], **more: Any) -> list[dict[str, Any]]:
    """``(line, times)`` each."""
    return [
        point("line", file="s.py", line=line, batch=batch, **more) for line, count in executions for _ in range(count)
    ]


def space(trace: list[dict[str, Any]], **more: Any) -> Space:
    asked: dict[str, Any] = {"roles": ROLES, "refusal": lambda plan: None, **more}
    return space_of(Question(trace=[point("query.start", "before"), *trace], **asked))


def texts(found: Space, step: str = "") -> list[str]:
    """But for an orderly end, zombies and what fails several times, which have tests of their own."""
    of_step = [one for one in found.points if one.step.startswith(step) and "times in a row" not in one.detail]
    return [one.text for one in of_step if one.action not in ("stop(driver)", "pause(driver)")]


def test_each_step_is_swept_in_the_batch_of_each_role() -> None:
    found = space([event for number in range(3) for event in batch_of(number)])
    assert texts(found, "sink.write:after") == [
        f"sink.write:after[batch={batch}] -> kill(driver)" for batch in ROLES.values()
    ]


def test_a_step_of_a_task_is_swept_by_each_action_that_its_phase_names() -> None:
    found = space(batch_of(1), roles={"middle": 1})
    assert texts(found, "task.run:before") == [
        f"task.run:before[batch=1, stage=1] -> {action}" for action in ("kill(driver)", "fail", "kill(executor)")
    ]


def test_what_this_environment_cannot_do_is_named_with_its_reason() -> None:
    found = space(
        batch_of(1),
        roles={"middle": 1},
        refusal=lambda plan: "needs --master standalone" if plan.faults[0].actions[0].target == "executor" else None,
    )
    assert not [one for one in found.points if one.action == "kill(executor)"]
    assert {(gap.step, gap.reason) for gap in found.impossible} == {
        ("task.run:before", "needs --master standalone"),
        ("task.run:after", "needs --master standalone"),
    }


def test_the_writing_stage_is_swept_in_every_role_and_the_others_by_turns() -> None:
    trace = [event for number in range(3) for event in batch_of(number, stages=(1, 1, 2))]
    found = space(trace)
    struck = [one for one in found.points if one.step.startswith("task.run:after") and one.action == "fail"]
    kills = [one.text for one in struck if not one.detail]
    assert kills == [
        f"task.run:after[batch={batch}, stage={stage}] -> fail" for batch, other in ((0, 1), (1, 2), (2, 1))
        for stage in (other, 3)
    ]  # fmt: skip


def test_a_task_with_few_rows_is_swept_at_its_first() -> None:
    found = space([*batch_of(0, rows=(1,)), *batch_of(1, rows=(1, 5)), *batch_of(2)])
    kills = [one.text for one in found.points if one.step == "task.row:before" and one.action == "fail"]
    assert kills == [f"task.row:before[batch={batch}, stage=1, row={row}] -> fail" for batch, row in ((0, 1), (1, 5))]
    assert ("task.row:before", "last") in {(gap.step, gap.role) for gap in found.impossible}


def test_the_task_that_hands_on_the_most_pieces_of_rows_fails_before_the_last_and_behind_the_first() -> None:
    def pieces(batch: int, partition: int, number: int) -> list[dict[str, Any]]:
        return [point("task.input", "before", batch=batch, stage=1, partition=partition)] * number

    tasks = [*pieces(0, 0, 4), *pieces(1, 0, 2), *pieces(1, 1, 5), *pieces(2, 0, 2)]
    found = space([*batch_of(0), *batch_of(1), *batch_of(2), *tasks])
    assert texts(found, "task.input") == [
        "task.input:before[batch=0, stage=1, partition=0]#3 -> fail",
        "task.input:before[batch=1, stage=1, partition=1]#4 -> fail",
        "set spark.buffer.size = 8; set spark.sql.execution.arrow.maxRecordsPerBatch = 1; "
        "task.input:before[batch=1, stage=1, partition=1]#2 -> fail",
    ]


def test_one_task_ended_and_no_other_begun_is_swept_where_a_stage_has_several_tasks() -> None:
    found = space(batch_of(1, stages=(1, 2)), roles={"middle": 1})
    assert texts(found, "one task ended") == [
        "task.run:after[batch=1, stage=2]#1 -> kill(driver) with hold(task.run:before[batch=1, stage=2]#2)"
    ]


@pytest.mark.parametrize("one_by_one", [False, True])
def test_all_tasks_but_one_have_ended_where_they_run_side_by_side(one_by_one: bool) -> None:
    edges = [("before", 0), ("after", 0), ("before", 1), ("after", 1), ("before", 2), ("after", 2)]
    if not one_by_one:
        edges = [("before", 0), ("before", 1), ("after", 0), ("before", 2), ("after", 1), ("after", 2)]
    trace = [point("task.run", edge, batch=1, stage=1, partition=number) for edge, number in edges]
    assert texts(space(trace, roles={"middle": 1}), "all tasks but one ended") == (
        []
        if one_by_one
        else [
            "task.run:after[batch=1, stage=1]#2 -> kill(driver) with "
            "hold(task.run:before[batch=1, stage=1, partition=0]#1)"
        ]
    )


def test_what_is_done_for_a_batch_last_kills_several_times_in_a_row_and_more_often_than_the_code_names() -> None:
    asked = [point("request", edge, batch=1, service="postgres", kind="COMMIT") for edge in ("before", "after")]
    places = [f"request:before[service=postgres, kind=COMMIT, batch=1]#{nth} -> kill(driver)" for nth in range(1, 7)]
    behind = "batch.commit:before[batch=1] -> kill(driver)"
    for numbers, times in ((frozenset[float](), 3), (frozenset({2.0, 5.0, 5000.0}), 6)):
        found = space(asked, roles={"middle": 1}, code=Code(numbers=numbers)).points
        in_a_row = [one for one in found if one.way.startswith("in a row")]
        assert [one.text for one in in_a_row] == ["; ".join(places[:times]), f"{places[0]}; {behind}"]
        assert len({one.way for one in in_a_row}) == 1, "the one stands for the other"


def test_the_middle_batch_is_struck_several_times_in_a_row_where_it_is_half_done_and_whole() -> None:
    trace = [
        *batch_of(1, stages=(1, 2)),
        point("sink.commit", "before", batch=1),
        point("batch.commit", "before", batch=1),
    ]
    found = [
        one
        for one in space(trace, roles={"middle": 1}).points
        if one.detail == "3 times in a row" and one.action != "fail"
    ]
    assert [one.text.split("; ") for one in found] == [
        [f"task.run:after[batch=1, stage=2, partition=0]#{nth} -> kill(driver)" for nth in (1, 2, 3)],
        [f"sink.commit:before[batch=1]#{nth} -> kill(driver)" for nth in (1, 2, 3)],
        [f"batch.commit:before[batch=1]#{nth} -> kill(driver)" for nth in (1, 2, 3)],
    ]
    assert found[0].label == "task.run:after, stage 2, 3 times in a row, kill(driver), middle batch"


def test_the_driver_is_ended_in_an_orderly_way_where_the_middle_batch_is_under_way() -> None:
    trace = [*batch_of(1, stages=(1, 2)), *lines(1, (7, 2), (8, 1)), *lines(1, (9, 1), role="python-worker")]
    found = [one.text for one in space(trace, roles={"middle": 1}).points if one.action == "stop(driver)"]
    assert found == [
        "sink.write:before[batch=1] -> stop(driver)",
        "task.run:after[batch=1, stage=2, partition=0] -> stop(driver)",
        "line[s.py:7][batch=1]#1 -> stop(driver)",
        "line[s.py:8][batch=1]#1 -> stop(driver)",
    ]


def test_and_where_its_requests_or_changes_of_files_are_done_in_part() -> None:
    requests = [point("request", "before", batch=1, service="redis", kind=kind) for kind in ("HSET", "DEL", "EXEC")]
    files = [point("file", edge, batch=1, op="create", path="target/a") for edge in ("before", "after")]
    found = [one.text for one in space([*requests, *files], roles={"middle": 1}).points if one.action == "stop(driver)"]
    assert found == [
        f"{at} -> stop(driver)"
        for at in (
            "request:after[service=redis, kind=HSET, batch=1]#1",
            "request:before[service=redis, kind=EXEC, batch=1]#1",
            'file:after[op=create, path="target/a", batch=1]#1',
            'file:before[op=create, path="target/a", batch=1]#1',
        )
    ]


def test_a_driver_is_taken_for_dead_before_lines_that_may_change_something() -> None:
    trace = [*batch_of(1), *lines(1, *((line, 2) for line in range(1, 20))), *lines(1, (30, 1), role="python-worker")]
    found = space(trace, roles={"middle": 1}, code=Code(acts=lambda line: line.line % 2 == 0))
    *pauses, for_good = [one for one in found.points if one.action == "pause(driver)"]
    end = " -> pause(driver, longest=30s) until batch.commit:after[batch=1]"
    assert [one.text.removesuffix(end) for one in pauses] == [
        "sink.write:before[batch=1]",
        *(f"line[s.py:{line}][batch=1]#1" for line in (2, 6, 8, 12, 14, 18)),
    ]
    assert all(one.alone and one.text.endswith(end) for one in pauses)
    assert for_good.text == f"line[s.py:18][batch=1]#1{end} then kill(driver)"


def test_a_driver_is_taken_for_dead_in_the_first_batch_too_and_once_until_the_next_one() -> None:
    trace = [event for batch in range(3) for event in [*batch_of(batch), *lines(batch, (7, 1))]]
    found = space(trace, code=Code(acts=lambda line: True))
    pauses = [one.text.split(" -> ") for one in found.points if one.action == "pause(driver)"]
    assert [(at, action.partition(" until ")[2]) for at, action in pauses] == [
        ("sink.write:before[batch=1]", "batch.commit:after[batch=1]"),
        ("sink.write:before[batch=1]", "batch.commit:after[batch=2]"),
        ("line[s.py:7][batch=0]#1", "batch.commit:after[batch=0]"),
        ("line[s.py:7][batch=1]#1", "batch.commit:after[batch=1]"),
        ("line[s.py:7][batch=1]#1", "batch.commit:after[batch=1] then kill(driver)"),
    ]


def test_a_driver_is_taken_for_dead_before_requests_and_changes_of_files() -> None:
    def changes(batch: int) -> list[dict[str, Any]]:
        asked = [point("request", "before", batch=batch, service="postgres", kind=kind, text=kind) for kind in "ABCDE"]
        made = [
            point("file", edge, batch=batch, op="create", path=f"target/{name}")
            for name in "abcde"
            for edge in ("before", "after")
        ]
        return [*asked, *made]

    def taken(by_lines: bool) -> list[str]:
        seen = lines(1, (7, 1)) if by_lines else []
        trace = [*batch_of(0), *changes(0), *batch_of(1), *seen, *changes(1)]
        points = space(trace, roles={"first": 0, "middle": 1}, code=Code(acts=lambda line: True)).points
        found = [one for one in points if one.action == "pause(driver)" and one.step.startswith(("request", "file"))]
        assert all(one.alone for one in found)
        at_once = [one.text for one in found if AT_ONCE in one.detail]
        here = "request:before[service=postgres, kind={0}, batch=1]#1"
        assert at_once == [f"{here} -> pause(driver, longest=30s) until {here}".format(kind) for kind in "ACE"]
        found = [one for one in found if AT_ONCE not in one.detail]
        return [f"{one.role} {one.detail.removeprefix('taken for dead, ')}" for one in found]

    def midway() -> list[str]:
        trace = [event for batch in range(3) for event in [*batch_of(batch), *changes(batch)[:5]]]
        found = [one.text for one in space(trace).points if "change of the next batch" in one.detail]
        return [re.sub(r"\[service=postgres, kind=(\w), batch=(\d)\]#1", r"\1\2", text) for text in found]

    ends = ["middle A 1 to postgres", "middle E 1 to postgres", "middle create target/a", "middle create target/e"]
    dies = [f"middle and dies half-way, {one}" for one in ("A 1 to postgres", "create target/a")]
    third, last = "middle create target/c", "middle and dies half-way, create target/e"
    dies += [third, third.replace("create", "and dies half-way, create"), last]
    assert taken(by_lines=True) == [*ends, "middle for good, E 1 to postgres", *dies]
    assert taken(by_lines=False) == [
        *(f"middle {kind} 1 to postgres" for kind in "ABDE"),
        "first E 1 to postgres",
        *(f"middle create target/{name}" for name in "abde"),
        "first create target/e",
        "middle for good, E 1 to postgres",
        *dies,
    ]
    assert midway() == [
        f"request:before{here} -> pause(driver, longest=30s) until request:before{there}; "
        f"request:before{there} -> delay(longest=20s) until sink.write:after[batch=1]"
        for here, there in (("A1", "B2"), ("A1", "E2"), *((f"{one}1", f"{one}2") for one in "EABCD"))
    ]


def test_a_driver_that_was_taken_for_dead_dies_behind_the_first_change_that_it_still_makes() -> None:
    trace = [
        point("request", edge, batch=1, service="postgres", kind=kind, text=kind)
        for kind in "AABA"
        for edge in ("before", "after")
    ]
    found = space([*batch_of(1), *trace], roles={"middle": 1}).points
    assert [one.text for one in found if "dies half-way" in one.detail] == [
        "request:before[service=postgres, kind=A, batch=1]#1 -> "
        "pause(driver, longest=30s) until batch.commit:after[batch=1]; "
        "request:after[service=postgres, kind=A, batch=1]#4 -> kill(self)"
    ], "three are the other one's"
    ways = [one.way for one in found if one.detail.startswith("taken for dead") and "A 1" in one.detail]
    assert len(ways) == 3, "where its change fails, there is nothing to die behind"
    assert len({*ways}) == 1
    unsteady = [{**one, "service": "kafka", "kind": "Produce"} for one in trace]
    assert not [one for one in space([*batch_of(1), *unsteady]).points if "dies half-way" in one.detail]


def test_a_driver_is_taken_for_dead_before_each_commit_and_the_last_request_of_a_connection() -> None:
    def asked(kind: str, connection: str) -> dict[str, Any]:
        return point("request", "before", batch=1, service="postgres", kind=kind, text=kind, thread=connection)

    trace = [*batch_of(1), *lines(1, (7, 1)), asked("CREATE", "1"), asked("COMMIT", "1")]
    trace += [asked("INSERT", "2"), asked("COMMIT", "2"), asked("AUDIT", "3")]
    found = space(trace, roles={"middle": 1}, code=Code(acts=lambda line: True)).points
    paused = [one for one in found if one.detail.startswith("taken for dead, ") and AT_ONCE not in one.detail]
    at = [one.plan.faults[0].at for one in paused if len(one.plan.faults) == 1]
    asked_for = [(one.where["kind"], one.nth) for one in at if isinstance(one, Point) and one.phase == "request"]
    assert asked_for == [("CREATE", 1), ("AUDIT", 1), ("COMMIT", 1), ("COMMIT", 2), ("AUDIT", 1)], "and one for good"


def test_a_driver_that_was_taken_for_dead_goes_on_at_files_whose_name_the_other_one_uses_too() -> None:
    made = [("create", f"target/draft/{name}*") for name in "abc"]
    made += [("create", "target/1.zip"), *(("delete", path) for _, path in made)]
    trace = [point("file", edge, batch=1, op=op, path=path) for op, path in made for edge in ("before", "after")]
    points = space([*batch_of(1), *trace], roles={"middle": 1}).points
    found = [one.text for one in points if one.action == "pause(driver)"]
    for path in ("target/draft/a*", "target/1.zip"):
        assert any(text.startswith(f'file:before[op=create, path="{path}"') for text in found), path
    dies = [text.split("; ")[1] for text in found if text.endswith("kill(self)")]
    assert any("target/1.zip" in text for text in dies), dies


def test_where_all_names_are_new_in_each_run_it_stands_still_at_the_first_and_the_last_change() -> None:
    made = [("create", "target/draft-*"), ("sync", "target/draft-*"), ("rename", "target/part-*")]
    trace = [point("file", edge, batch=1, op=op, path=path) for op, path in made for edge in ("before", "after")]
    points = space([*batch_of(1), *trace], roles={"middle": 1}).points
    ends = [one.text for one in points if one.text.endswith("until batch.commit:after[batch=1]")]
    at = [text.partition("[op=")[2].partition(",")[0] for text in ends if text.startswith("file:before")]
    assert at == ["create", "rename"]


def test_a_driver_that_was_taken_for_dead_dies_behind_changes_that_take_something_away() -> None:
    made = [("create", "target/note"), ("create", "target/rows"), ("rename", "target/new")]
    trace = [point("file", edge, batch=1, op=op, path=path) for op, path in made for edge in ("before", "after")]
    found = space([*batch_of(1), *trace], roles={"middle": 1}).points
    dies = [one.text.split("; ")[1] for one in found if "dies half-way" in one.detail]
    assert dies == [
        'file:after[op=create, path="target/note", batch=1]#2 -> kill(self)',
        'file:after[op=create, path="target/rows", batch=1]#2 -> kill(self)',
    ]


def test_a_driver_that_was_taken_for_dead_comes_back_where_the_other_one_is_about_to_do_the_next_change() -> None:
    asked = point("request", "before", batch=1, service="postgres", kind="INSERT", text="INSERT")
    trace = [*batch_of(1), *(event for line in (6, 7, 8) for event in (*lines(1, (line, 1)), asked))]

    def beside(*more: dict[str, Any]) -> list[str]:
        found = space([*trace, *more], roles={"middle": 1}, code=Code(acts=lambda line: True)).points
        return [one.text for one in found if "at the next change" in one.detail]

    def plan(first: int, then: int) -> str:
        here, there = (f"line[s.py:{line}][batch=1]#1" for line in (first, then))
        return (
            f"{here} -> pause(driver, longest=30s) until {there}; {there} -> delay(longest=5s) until "
            "sink.write:after[batch=1]"
        )

    assert beside() == [plan(6, 7), plan(7, 8)]
    ahead = [one.text for one in space(trace, roles={"middle": 1}, code=Code(acts=lambda line: True)).points]
    behind = "line[s.py:7][batch=1]#2 -> delay(longest=5s) until sink.write:after[batch=1]"
    for line in (7, 8):
        here = f"line[s.py:{line}][batch=1]#1 -> pause(driver, longest=30s) until line[s.py:7][batch=1]#1; {behind}"
        assert here in ahead, "the other one comes behind it, and may remove what it has prepared"
        assert here.replace("7][batch=1]#1; ", "6][batch=1]#1; ").replace("7][batch=1]#2", "6][batch=1]#2") in ahead
    in_a_task = [{**event, "role": "python-worker"} for event in lines(1, (7, 1))]
    assert beside(*in_a_task) == [plan(6, 8)], "a task may be there while the driver is being stopped"


def test_a_driver_that_was_taken_for_dead_comes_back_between_the_changes_of_the_next_batch() -> None:
    def batches(*changing: int) -> list[tuple[int, int]]:
        trace = []
        for batch in range(3):
            asked = point("request", "before", batch=batch, service="postgres", kind="INSERT", text="INSERT")
            trace += batch_of(batch)
            for line in (6, 7, 8, 9):
                trace += [*lines(batch, (line, 1)), *([asked] if line in changing else [])]
        found = space(trace, code=Code(acts=lambda line: True)).points
        struck = [one for one in found if "change of the next batch" in one.detail]
        assert len({one.label for one in struck}) == len(struck)
        assert all(one.alone for one in struck)
        return [midway(one.text) for one in struck]

    def midway(text: str) -> tuple[int, int]:
        lines = re.findall(r"line\[s.py:(\d+)\]", text)
        here, there = (f"line[s.py:{line}]" for line in (lines[0], lines[-1]))
        assert text == (
            f"{here}[batch=1]#1 -> pause(driver, longest=30s) until {there}[batch=2]#1; "
            f"{there}[batch=2]#1 -> delay(longest=20s) until sink.write:after[batch=1]"
        )
        return int(lines[0]), int(lines[-1])

    assert batches(6, 8, 9) == [(6, 8), (6, 9), (9, 9), (6, 6), (8, 8)], "and at the same change of both batches"
    assert batches(6, 8) == [(6, 8), (8, 8), (6, 6)]
    assert batches(9) == [], "nothing comes behind its only change"


def test_a_driver_that_was_taken_for_dead_comes_back_before_its_changes_when_the_next_batch_is_done() -> None:
    def later(batches: int, *changing: int) -> list[int]:
        trace = []
        for batch in range(batches):
            asked = point("request", "before", batch=batch, service="postgres", kind="INSERT", text="INSERT")
            trace += batch_of(batch)
            trace += [event for line in changing for event in (*lines(batch, (line, 1)), asked)]
        found = [one.text for one in space(trace, code=Code(acts=lambda line: True)).points]
        ending = "[batch=1]#1 -> pause(driver, longest=30s) until batch.commit:after[batch=2]"
        return [int(text[len("line[s.py:") : text.index("]")]) for text in found if text.endswith(ending)]

    assert later(3, 4, 5, 6, 7, 8) == [4, 5, 6, 7, 8]
    assert later(3, *range(1, 10)) == [1, 3, 4, 6, 7, 9], "six at most, evenly"
    assert later(3, 4, 5) == [4, 5]
    assert later(2, 4, 5) == [], "no batch comes behind it"


def test_it_comes_back_a_batch_later_before_changes_of_a_file_that_both_batches_have_by_one_name() -> None:
    def changed(batch: int) -> list[dict[str, Any]]:
        paths = ("manifest.json", f"rows-{batch}.parquet", "manifest.json")
        return [
            point("file", edge, batch=batch, op="rename", path=f"target/{path}")
            for path in paths
            for edge in ("before", "after")
        ]

    trace = [event for batch in range(3) for event in (*batch_of(batch), *lines(batch, (4, 1)), *changed(batch))]
    texts = [one.text for one in space(trace, code=Code(acts=lambda line: True)).points]
    ending = " -> pause(driver, longest=30s) until batch.commit:after[batch=2]"
    assert [text.removesuffix(ending) for text in texts if text.startswith("file") and text.endswith(ending)] == [
        f'file:before[op=rename, path="target/manifest.json", batch=1]#{nth}' for nth in (1, 2)
    ]


def test_it_comes_back_a_batch_later_before_what_may_take_a_lock_that_no_change_shows() -> None:
    """Lines 2 to 4 come before the first change of a file, of which 3 is the last that calls something."""

    def ahead(phase: str, **more: Any) -> list[str]:
        change = [point(phase, edge, **more) for edge in ("before", "after")]
        trace = [
            event
            for batch in range(3)
            for event in (*batch_of(batch), *lines(batch, *((line, 1) for line in (2, 3, 4, 5))), *change)
            for event in [event | {"batch": batch}]
        ]
        code = Code(acts=lambda line: line.line == 5, calls=lambda line: line.line != 4)
        ending = "[batch=1]#1 -> pause(driver, longest=30s) until batch.commit:after[batch=2]"
        texts = [one.text for one in space(trace, code=code).points]
        return [text.removesuffix(ending) for text in texts if text.startswith("line") and text.endswith(ending)]

    assert ahead("file", op="rename", path="target/log") == ["line[s.py:3]", "line[s.py:5]"]
    assert ahead("request", service="postgres", kind="INSERT", text="INSERT") == ["line[s.py:5]"], "a lock is a request"


def test_it_comes_back_behind_the_last_batch_which_no_further_one_mends() -> None:
    def behind(roles: dict[str, int]) -> list[str]:
        asked = [point("request", "before", batch=0, service="postgres", kind="INSERT", text="INSERT")]
        trace = [
            event
            for batch in range(5)
            for event in (
                *batch_of(batch),
                *(one for line in (6, 7, 8) for one in (*lines(batch, (line, 1)), asked[0] | {"batch": batch})),
            )
        ]
        found = space(trace, roles=roles, code=Code(acts=lambda line: True)).points
        return [one.text for one in found if "until the last batch" in one.detail]

    assert behind({"middle": 2, "quiet": 3, "last": 4}) == [
        f"line[s.py:{line}][batch=3]#1 -> pause(driver, longest=30s) until batch.commit:after[batch=4]"
        for line in (6, 7, 8)
    ]
    assert behind({"middle": 3, "last": 4}) == [], "it comes back a batch later there as well"
    assert behind({"middle": 2}) == []


def test_a_driver_is_taken_for_dead_before_what_only_other_batches_than_the_middle_one_do() -> None:
    def asked(batch: int, kind: str) -> dict[str, Any]:
        return point("request", "before", batch=batch, service="postgres", kind=kind, text=kind)

    def elsewhere(at_first: list[dict[str, Any]], at_last: list[dict[str, Any]]) -> list[str]:
        every = [[*batch_of(batch), *lines(batch, (7, 1)), asked(batch, "INSERT")] for batch in range(3)]
        trace = [*every[0], *at_first, *every[1], *every[2], *at_last]
        found = space(trace, code=Code(acts=lambda line: True)).points
        pauses = [one for one in found if one.action == "pause(driver)" and one.role != "middle"]
        assert all(one.alone for one in pauses)
        texts = [one.text.replace("pause(driver, longest=30s) until batch.commit:after", "until") for one in pauses]
        return [text for text in texts if "line[s.py:7]" not in text]

    at_first, at_last = (f"line[s.py:4][batch={batch}]#1 -> until[batch={batch}]" for batch in (0, 2))
    later = "line[s.py:4][batch=0]#1 -> until[batch=1]"
    assert elsewhere(lines(0, (4, 1)), []) == [at_first, later]
    assert elsewhere(lines(0, (4, 1)), lines(2, (4, 1))) == [at_first, later], "once"
    assert elsewhere([], lines(2, (4, 1))) == [at_last], "no batch comes behind it"
    dropped = "request:before[service=postgres, kind=DROP, batch=0]#1 -> until[batch=1]"
    assert elsewhere([asked(0, kind) for kind in ("DROP", "DROP", "INSERT")], []) == [dropped], "by the same line"
    made = [point("file", "before", batch=0, op=op, path=f"target/{op}") for op in ("mkdir", "unlink")]
    assert elsewhere(made, []) == ['file:before[op=unlink, path="target/unlink", batch=0]#1 -> until[batch=1]']


def test_a_batch_that_is_written_in_pieces_is_struck_three_times_in_the_middle_of_it() -> None:
    def pieces(count: int) -> list[str]:
        asked = [
            point("request", edge, batch=1, service="postgres", kind=kind, text=kind)
            for kind in ["INSERT", "INSERT", "COMMIT"] * count
            for edge in ("before", "after")
        ]
        found = space([*batch_of(1), *asked], roles={"middle": 1}).points
        return [one.text for one in found if "each time" in one.detail]

    at = "request:after[service=postgres, kind=COMMIT, batch=1]"
    assert pieces(7) == [
        f"{at}#2 -> kill(driver); {at}#4 -> kill(driver); batch.commit:before[batch=1] -> kill(driver)"
    ]
    assert pieces(1) == []


def test_what_a_half_written_batch_leaves_is_met_at_its_end_and_behind_it() -> None:
    def asked(*kinds: str) -> list[dict[str, Any]]:
        return [
            point("request", edge, batch=1, service="postgres", kind=kind, text=kind)
            for kind in kinds
            for edge in ("before", "after")
        ]

    def plans(*trace: dict[str, Any]) -> list[tuple[str, ...]]:
        found = space([*trace], roles={"middle": 1}).points
        of_two = [one for one in found if "then b" in one.detail and "next attempt" not in one.detail]
        return [tuple(one.text.split("; ")) for one in of_two]

    *begin, end = batch_of(1)
    first, last = (
        f"request:{edge}[service=postgres, kind={kind}, batch=1]#1 -> kill(driver)"
        for edge, kind in (("after", "INSERT"), ("before", "COMMIT"))
    )
    behind, ended = (
        "batch.commit:before[batch=1] -> kill(driver)",
        "task.run:after[batch=1, stage=1, partition=0]#1 -> ",
    )
    anywhere = [(first, last), (first, behind), (last, behind)]
    failed = [(f"{ended}{action}", behind) for action in ("kill(driver)", "fail")]
    assert plans(*begin, *asked("INSERT", "COMMIT"), end) == anywhere, "tasks change nothing"
    assert plans(*begin[:2], *asked("INSERT", "COMMIT"), *begin[2:], end) == [*anywhere, *failed]
    assert plans(*begin[:2], *asked("INSERT"), *begin[2:], *asked("COMMIT"), end) == [
        *anywhere, *((one, second) for one, _ in failed for second in (last, behind))
    ]  # fmt: skip


def test_of_more_lines_those_that_changed_something_come_first() -> None:
    asked = point("request", "before", batch=1, service="postgres", kind="INSERT", text="INSERT")
    trace = [
        *batch_of(1),
        *lines(1, *((line, 2) for line in range(1, 11))),
        asked,
        *lines(1, (12, 1), (14, 1), (16, 1)),
    ]
    found = space([*trace, asked], roles={"middle": 1}, code=Code(acts=lambda line: line.line % 2 == 0)).points
    pauses = [one.at.line for one in found if one.detail == "taken for dead" and isinstance(one.at, Line)]
    assert pauses == [2, 6, 8, 10, 14, 16], "10 and 16 had requests behind them"


def test_the_driver_dies_in_each_abort_to_which_an_error_leads() -> None:
    commits = [point("task.commit", "before", batch=1, stage=2), point("sink.commit", "before", batch=1)]
    found = space([*batch_of(1, stages=(1, 2)), *commits], roles={"middle": 1}).points
    task, batch = ("task.{}[batch=1, stage=2, partition=0] -> {}", "sink.{}[batch=1] -> {}")
    assert [one.text.split("; ") for one in found if ".abort" in one.step] == [
        [step.format("commit:before", "fail"), step.format(f"abort:{edge}", "kill(driver)")]
        for step in (task, batch)
        for edge in ("before", "after")
    ]
    assert {one.detail for one in found if one.step == "sink.abort:after"} == {"after a fault at sink.commit:before"}
    without = space(batch_of(1, stages=(1, 2)), roles={"middle": 1}).points
    assert not [one for one in without if ".abort" in one.step], "foreachBatch has none"


def test_a_task_fails_until_its_last_attempt_and_until_its_job_is_given_up() -> None:
    points = space(batch_of(1, stages=(1, 2)), roles={"middle": 1}).points
    found = [one for one in points if one.action == "fail" and "times" in one.detail]
    assert [one.text.split("; ") for one in found] == [
        [f"task.run:before[batch=1, stage=2, partition=0]#{nth} -> fail" for nth in (1, 2, 3)],
        [f"task.run:before[batch=1, stage=2, partition=0]#{nth} -> fail" for nth in (1, 2, 3, 4)],
        [f"task.run:after[batch=1, stage=2, partition=0]#{nth} -> fail" for nth in (1, 2, 3, 4)],
    ]


def test_batches_of_two_digits_are_struck_in_a_longer_run_of_their_own() -> None:
    trace = [*batch_of(1), point("batch.commit", "before", batch=1)]
    found = space(trace, roles={"middle": 1}, batches=3).points
    late = [one for one in found if one.role == "late"]
    assert [one.text for one in late] == [
        "set batches = 12",
        *(f"set batches = 12; batch.commit:before[batch={batch}] -> kill(driver)" for batch in (8, 9, 10, 11)),
        "set batches = 12; sink.write:before[batch=0] -> pause(driver, longest=1m) until batch.commit:after[batch=10]",
        "set batches = 12; task.run:after[batch=8, stage=1, partition=0] -> fail",
    ]
    assert late[0].alone
    assert late[-2].alone
    assert late[-1].alone
    [pack, *_] = [pack for pack in packs(found, 8) if pack.plan.settings == {"batches": "12"}]
    assert pack.points == tuple(late[1:-2])
    assert all(len({str(one.plan.settings) for one in pack.points}) == 1 for pack in packs(found, 8))


def test_a_task_fails_in_a_longer_run_that_has_no_other_fault() -> None:
    trace = [*batch_of(1, stages=(1, 2)), point("batch.commit", "before", batch=1)]
    late = [one for one in space(trace, roles={"middle": 1}, batches=3).points if one.role == "late"]
    [failing] = [one for one in late if one.action == "fail"]
    assert failing.text == "set batches = 12; task.run:after[batch=8, stage=2, partition=0] -> fail"
    assert failing.alone


def test_what_every_batch_asks_for_is_struck_where_ten_batches_lie_behind_it_and_before_the_tenth() -> None:
    def asked(batch: int, *kinds: str) -> list[dict[str, Any]]:
        more = {"batch": batch, "service": "postgres"}
        of_kinds = [point("request", "before", kind=kind, text=kind, **more) for kind in kinds]
        return [*batch_of(batch), *of_kinds, point("batch.commit", "before", batch=batch)]

    trace = [
        *asked(0, "CREATE", "INSERT", "DELETE", "DELETE"),
        *asked(1, "INSERT", "INSERT", "DELETE", "DELETE"),
        *asked(2, "INSERT", "DELETE", "DELETE", "DELETE"),
    ]
    late = [one for one in space(trace, batches=3).points if one.role == "late" and one.step.startswith("request")]
    assert [one.text.removeprefix("set batches = 12; request:") for one in late] == [
        "before[service=postgres, kind=INSERT, batch=10]#1 -> kill(driver)",
        "after[service=postgres, kind=INSERT, batch=11]#1 -> kill(driver)",
        "before[service=postgres, kind=DELETE, batch=10]#1 -> kill(driver)",
        "after[service=postgres, kind=DELETE, batch=11]#1 -> kill(driver)",
        "before[service=postgres, kind=INSERT, batch=8]#1 -> kill(driver)",
        "before[service=postgres, kind=DELETE, batch=8]#1 -> kill(driver)",
        "before[service=postgres, kind=DELETE, batch=8]#2 -> kill(driver)",
    ]


@pytest.mark.parametrize("batches", [None, 12, 20])
def test_a_longer_run_is_not_made_where_one_batch_is_asked_for_or_the_workload_is_as_long(batches: int | None) -> None:
    trace = [*batch_of(1), point("batch.commit", "before", batch=1)]
    assert not [one for one in space(trace, roles={"middle": 1}, batches=batches).points if one.role == "late"]


def test_one_task_of_a_stage_is_one_that_it_has() -> None:
    """toLocalIterator fetches one partition after the other, each by a job of its own."""
    trace = [point("sink.write", "before", batch=1)]
    for partition in range(3):
        where = {"batch": 1, "stage": partition + 1, "partition": partition}
        trace += [point("task.run", "before", **where), point("task.run", "after", **where)]
    trace += [point("sink.write", "after", batch=1)]
    found = [one.text for one in space(trace, roles={"middle": 1}).points if "partition=" in one.text]
    assert len(found) > 3
    assert all("stage=3, partition=2" in text for text in found)


def test_a_step_that_the_sinks_kind_must_have_and_the_trace_lacks_is_not_reached() -> None:
    found = space(batch_of(1), required=frozenset({("sink.write", "before"), ("task.commit", "before")}))
    assert [gap.step for gap in found.unreached] == ["task.commit:before"]


def test_a_lines_first_and_last_execution_are_swept_by_kill_and_by_fail_the_roles_by_turns() -> None:
    trace = [*lines(0, (7, 3)), *lines(1, (7, 2)), *lines(2, (7, 4))]
    found = space(trace, roles={"first": 0, "middle": 1, "last": 2})
    assert texts(found, "line") == [
        "line[s.py:7][batch=0]#1 -> kill(driver)",
        "line[s.py:7][batch=1]#1 -> fail",
        "line[s.py:7][batch=2]#4 -> kill(driver)",
        "line[s.py:7][batch=0]#3 -> fail",
    ]


@pytest.mark.parametrize("batches", [2, 3, 4, 5])
def test_each_role_has_its_turn_and_no_error_comes_in_the_last_batch_alone(batches: int) -> None:
    roles = {name: batch for batch, name in enumerate(("first", "middle", "quiet", "more", "last")[:batches])}
    trace = [report for batch in range(batches) for report in batch_of(batch)]
    question = Question(trace=trace, roles=roles, refusal=lambda plan: None)
    last = [*roles][-1]
    for begin in (0, 1):  # what has two edges is struck at every second turn
        turns = [in_turn(question, turn, [*roles], "fail") for turn in range(begin, 40, 2)]
        assert {one[0] for one in turns} == set(roles)
        assert {len(one) for one in turns if one[0] == last} == {2}
        assert {one[1] for one in turns if len(one) > 1} == set(roles) - {last}
        assert all(len(one) == 1 for one in turns if one[0] != last)
    assert [in_turn(question, turn, [last], "fail") for turn in range(3)] == [[last]] * 3
    kills = [in_turn(question, turn, [*roles], "kill") for turn in range(40)]
    assert {len(one) for one in kills} == {1}


def test_no_error_comes_where_a_with_is_left() -> None:
    """Whatever fails there, ``__exit__`` has been called, and has rolled back."""
    code = Code(leaves=lambda line, nth: line.line == 7 and nth % 2 == 0)
    assert texts(space(lines(1, (7, 4), (8, 2)), roles={"middle": 1}, code=code), "line") == [
        "line[s.py:7][batch=1]#1 -> kill(driver)",
        "line[s.py:7][batch=1]#1 -> fail",
        "line[s.py:7][batch=1]#4 -> kill(driver)",
        "line[s.py:8][batch=1]#1 -> kill(driver)",
        "line[s.py:8][batch=1]#1 -> fail",
        "line[s.py:8][batch=1]#2 -> kill(driver)",
        "line[s.py:8][batch=1]#2 -> fail",
    ]


def test_a_line_inside_a_try_raises_what_its_except_clauses_name_before_it_and_after_its_call() -> None:
    code = Code(errors=lambda line: ("psycopg.OperationalError",), calls=lambda line: True)
    assert texts(space(lines(1, (7, 1)), roles={"middle": 1}, code=code), "line") == [
        "line[s.py:7][batch=1]#1 -> kill(driver)",
        "line[s.py:7][batch=1]#1 -> fail(error=psycopg.OperationalError)",
        "line[s.py:7][batch=1]#1 -> fail(error=psycopg.OperationalError, after=true)",
    ]


def test_what_a_caller_catches_is_raised_at_the_first_execution_that_it_called() -> None:
    """Batch 0 calls the line once by itself, then from within a retry; batch 1 by itself only."""
    retried = lines(0, (7, 1), callers="s.py:20")
    trace = [*lines(0, (7, 1), callers="s.py:30"), *retried, *lines(1, (7, 1), callers="s.py:30")]
    code = Code(
        errors=lambda lines: ["OSError", "psycopg.errors.DeadlockDetected"] if Line("s.py", 20) in lines else [],
        calls=lambda line: True,
    )
    found = texts(space(trace, roles={"first": 0, "middle": 1}, code=code), "line s.py:7")
    assert [text for text in found if "error=" in text] == [
        "line[s.py:7][batch=0]#2 -> fail(error=OSError)",
        "line[s.py:7][batch=0]#2 -> fail(error=psycopg.errors.DeadlockDetected)",
        "line[s.py:7][batch=0]#2 -> fail(error=OSError, after=true)",
    ]


def test_a_line_is_struck_in_the_batches_in_which_both_traces_have_it() -> None:
    """A thread of the sink's own runs 9 once a second."""
    trace = [event for batch in range(3) for event in lines(batch, (7, 1), (9, 1))]
    replay = [*lines(0, (7, 1)), *lines(1, (7, 1), (9, 2)), *lines(2, (7, 1))]
    assert texts(space(trace, replay=replay), "line s.py:9") == [
        "line[s.py:9][batch=1]#1 -> kill(driver)",
        "line[s.py:9][batch=1]#1 -> fail",
    ]


def test_a_line_that_falls_into_a_batch_by_chance_is_struck_in_whatever_batch_it_comes_first() -> None:
    trace = [*lines(0, (7, 1)), *lines(1, (7, 1), (9, 2)), *lines(2, (7, 1))]
    found = space(trace, replay=[event for batch in range(3) for event in lines(batch, (7, 1))])
    struck = [one for one in found.points if one.step == "line s.py:9" and one.action in ("kill(driver)", "fail")]
    assert [one.text for one in struck] == ["line[s.py:9]#1 -> kill(driver)", "line[s.py:9]#1 -> fail"]
    assert all((one.role, one.batch, one.alone) == ("any", None, True) for one in struck)


def test_what_only_a_replay_runs_is_struck_a_second_time() -> None:
    replay = [*lines(1, (7, 1)), *lines(1, (7, 1), (9, 2), run=REPLAY)]
    found = space(lines(1, (7, 1)), roles={"middle": 1}, replay=replay)
    assert [text for text in texts(found, "line") if ":9]" in text] == [
        f"batch.commit:before[batch=1] -> kill(driver); line[s.py:9][batch=1]#{nth} -> {action}"
        for nth in (1, 2)
        for action in ("kill(driver)", "fail")
    ]


def test_what_a_replay_asks_for_anew_fails_there_where_the_code_is_ready_for_it() -> None:
    """The replay asks (7), finds the batch, and writes nothing (8)."""
    replay = [*lines(1, (7, 1), (8, 1)), *lines(1, (7, 1), run=REPLAY)]
    code = Code(errors=lambda lines: ["psycopg.Error"], calls=lambda line: line.line == 7)
    found = space(lines(1, (7, 1), (8, 1)), roles={"middle": 1}, replay=replay, code=code)
    assert [text for text in texts(found, "line") if ":7]" in text and "batch.commit" in text] == [
        "batch.commit:before[batch=1] -> kill(driver); line[s.py:7][batch=1]#2 -> fail(error=psycopg.Error)"
    ]


@pytest.mark.parametrize("profile", ["standard", "full"])
def test_no_point_of_a_replay_comes_twice(profile: str) -> None:
    replay = [*lines(1, (7, 1)), *lines(1, (7, 1), (9, 1), run=REPLAY)]
    code = Code(errors=lambda lines: ["psycopg.Error"], calls=lambda line: True)
    found = texts(space(lines(1, (7, 1)), roles={"middle": 1}, replay=replay, code=code, profile=profile))
    assert len(found) == len(set(found))


def test_the_point_behind_the_recoverys_last_line_is_struck_too() -> None:
    """The replay deletes (9) before it writes (8), which the first run does as well."""
    replay = [*lines(1, (7, 1), (8, 1)), *lines(1, (7, 1), (9, 1), (8, 1), run=REPLAY)]
    found = space(lines(1, (7, 1), (8, 1)), roles={"middle": 1}, replay=replay)
    crash = "batch.commit:before[batch=1] -> kill(driver); "
    kills = [text for text in texts(found) if text.startswith(crash) and text.endswith("kill(driver)")]
    assert kills == [f"{crash}line[s.py:{line}][batch=1]#{nth} -> kill(driver)" for line, nth in ((9, 1), (8, 2))]


def test_a_replay_that_ends_in_its_own_way_is_struck_where_the_hand_over_ends() -> None:
    replay = [*lines(1, (7, 1), (8, 1)), *lines(1, (7, 1), run=REPLAY)]
    found = space(lines(1, (7, 1), (8, 1)), roles={"middle": 1}, replay=replay)
    plan = "batch.commit:before[batch=1] -> kill(driver); sink.write:after[batch=1]#2 -> kill(driver)"
    assert plan in texts(found)


def test_a_quick_sweep_kills_the_driver_at_each_step_of_the_middle_batch() -> None:
    trace = [event for number in range(3) for event in [*batch_of(number), *lines(number, (7, 1))]]
    found = space(trace, profile="quick")
    assert {(one.action, one.batch) for one in found.points} == {("kill(driver)", None), ("kill(driver)", 1)}
    assert not texts(found, "line")


def test_a_demonstration_strikes_each_step_once_in_batches_by_turns() -> None:
    trace = [event for number in range(3) for event in batch_of(number)]
    found = space(trace, profile="demo")
    steps = [one.step for one in found.points]
    assert len(steps) == len(set(steps))
    assert {one.batch for one in found.points} == {None, 0, 1, 2}


@pytest.mark.parametrize(
    ("wanted", "steps"),
    [
        ("task.run", {"task.run:before", "task.run:after"}),
        ("sink.*:after,query.start", {"sink.write:after", "query.start:before"}),
        ("lines", {"line s.py:7"}),
    ],
)
def test_points_are_chosen_by_name(wanted: str, steps: set[str]) -> None:
    found = space([*batch_of(1), *lines(1, (7, 1))], roles={"middle": 1})
    assert {one.step for one in select(found, wanted).points} == steps
    assert select(found, "all") == found


def test_a_name_that_selects_nothing_is_refused_with_the_steps_that_there_are() -> None:
    with pytest.raises(UsageError, match=r"'task.commit' selects nothing: .*sink.write:before"):
        select(space(batch_of(1)), "task.commit")
    with pytest.raises(UsageError, match=r"'task.comit' is unknown: .*phases, lines, all.*task.commit"):
        check_points("task.comit")
    trace = [*batch_of(1), point("batch.commit", "before", batch=1)]
    several = space(trace, roles={"middle": 1}, batches=3)
    assert select(several, "without a fault,line s.py:99").points, "the long run may be the first to come there"
    with pytest.raises(UsageError, match=r"'line s.py:99' selects nothing"):
        select(several, "without a fault,line s.py:99", whole=True)
    check_points("task.*:after,lines,line team/writer.py:42")


@pytest.mark.parametrize("name", ["line s.py:7", "line s.py", "line *", "line *:4[0-9]", "line a?b.py:1*", "line"])
def test_a_line_is_named_by_its_file_and_number(name: str) -> None:
    check_points(name)


@pytest.mark.parametrize("name", ["line s.py:abc", "line s.py:", "line s.py:7.5", "line s.py:-1x", "line s.py:7:b"])
def test_a_line_that_has_no_number_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"is unknown: .*line my_sink.py:12"):
        check_points(name)


def test_a_pack_has_at_most_one_point_for_each_batch_and_what_knows_no_batch_runs_alone() -> None:
    found = space([event for number in range(3) for event in batch_of(number)]).points
    packed = packs(found, 8)
    assert sorted(one.text for pack in packed for one in pack.points) == sorted(one.text for one in found)
    for pack in packed:
        batches = [one.batch for one in pack.points]
        assert len(set(batches)) == len(batches)
        assert len(batches) == 1 or not any(one.alone or one.batch is None for one in pack.points)
    assert max(len(pack.points) for pack in packed) == 3
    assert all(len(pack.points) == 1 for pack in packs(found, 1))


def test_the_batch_behind_an_error_that_may_be_caught_is_left_alone() -> None:
    """What the error has left for it shows only there. A death of the driver has left nothing in memory."""

    def at(batch: int, action: str) -> SweepPoint:
        return SweepPoint(Line("s.py", 7), action, "", batch, parse(f"line[s.py:7][batch={batch}]#1 -> {action}"))

    error, death = "fail(error=OSError)", "kill(driver)"
    packed = packs([at(1, error), at(2, death), at(0, death), at(3, error), at(4, death)], 8)
    assert [[point.batch for point in pack.points] for pack in packed] == [[0, 1, 3], [2, 4]]


def test_where_the_first_failure_ends_a_sweep_each_kind_of_point_comes_before_more_of_the_same() -> None:
    roles = {"first": 0, "middle": 1, "last": 2}
    found = packs(space([*batch_of(0), *lines(1, (7, 3)), *batch_of(2)], roles=roles).points, 1)
    first, others = of_each_kind(found)
    kinds = [(one.step.partition(".py")[0], one.action) for pack in first for one in pack.points]
    assert len(set(kinds)) == len(kinds)
    assert {(one.step.partition(".py")[0], one.action) for pack in others for one in pack.points} <= set(kinds)
    assert {kind[1] for kind in kinds if kind[0].startswith("line")} == {"kill(driver)", "fail", "stop(driver)"}
    assert sorted(map(id, first + others)) == sorted(map(id, found))


def test_a_run_that_has_more_new_kinds_of_points_comes_first() -> None:
    alone, both = (
        packs([SweepPoint(Step(step, "after"), "fail", "", number, Plan()) for number, step in found], 2)[0]
        for found in ([(0, "a")], [(0, "a"), (1, "b")])
    )
    assert of_each_kind([alone, both]) == ([both], [alone])
    assert of_each_kind([alone, both], both.points) == ([], [alone, both]), "all kinds have been struck before"


def test_what_strikes_at_shared_brokers_comes_last() -> None:
    here = Step("txn.prepare", "after")
    shared, own = (SweepPoint(here, "fail", "middle", 1, Plan(), exclusive=exclusive) for exclusive in (True, False))
    assert [pack.exclusive for pack in packs([shared, own], 1)] == [False, True]


def test_the_middle_batch_of_each_step_also_runs_alone() -> None:
    found = space([event for number in range(3) for event in batch_of(number)])
    assert {one.role for one in found.points if one.alone and one.batch is not None} == {"middle"}


def test_roles_are_different_batches() -> None:
    assert batch_roles(Workload(batches=2)) == {"middle": 0, "last": 1}
    assert batch_roles(Workload(batches=1, partitions=1)) == {"middle": 0}
    assert batch_roles(Workload(), 3) == {"middle": 3}
    with pytest.raises(UsageError, match=r"--batch 7 is beyond the workload: it has batches 0 to 4"):
        batch_roles(Workload(), 7)
