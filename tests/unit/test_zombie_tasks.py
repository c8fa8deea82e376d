"""Tasks that are taken for lost, as points: where their executors are cut off, as the trace recorded it."""

from __future__ import annotations

from typing import Any

from onceproof.faults import Plan, format_plan, parse
from onceproof.harness.certification.points import Gap, Question, SweepPoint
from onceproof.harness.certification.space import space_of

HEAD = (
    'set spark.executor.heartbeatInterval = "1s"; set spark.network.timeoutInterval = "2s"; '
    'set spark.storage.blockManagerHeartbeatTimeoutMs = "10s"; '
)
CUT = " -> partition(executor, for=30s) then delay(longest=28s) until batch.commit:after[batch=1]; "
TAIL = "sink.write:before[batch=2] -> delay(40s)"


def reported(phase: str, batch: int = 1, edge: str = "before", **fields: Any) -> dict[str, Any]:
    return {"event": "point", "t": 0.0, "phase": phase, "edge": edge, "batch": batch, "run": "r", **fields}


OF_TASK = {"stage": 1, "partition": 0, "role": "executor", "process": "worker-1:7"}
RUN = reported("task.run", **OF_TASK)
END = reported("task.run", edge="after", **OF_TASK)
ROW = reported("task.row", row=5, **OF_TASK)
FIRST = reported("task.row", row=1, **OF_TASK)
COMMIT = reported("task.commit", **OF_TASK)
NEXT = reported("sink.write", 2)


def created(name: str, batch: int = 1) -> list[dict[str, Any]]:
    """By a task."""
    of_task = {**OF_TASK, "stage": 1, "op": "create", "path": f"target/{name}"}
    return [
        reported("task.run", batch, **OF_TASK),
        *(reported("file", batch, edge, **of_task) for edge in ("before", "after")),
        reported("task.run", batch, "after", **OF_TASK),
    ]


MIDDLE = created("c", 2)
REQUEST = reported("request", service="postgres", kind="INSERT", text="INSERT", **OF_TASK)


ROLES = {"first": 0, "second": 1, "middle": 2}


def question(*trace: dict[str, Any], **more: Any) -> Question:
    return Question(trace, **({"roles": ROLES, "refusal": lambda plan: None} | more))


def lost(*trace: dict[str, Any], **more: Any) -> list[SweepPoint]:
    return [one for one in space_of(question(*trace, **more)).points if one.detail.startswith("taken for lost")]


def text(at: str) -> str:
    return f"{HEAD}{at}#1{CUT}{TAIL}"


AT_ROW = text("task.row:before[batch=1, stage=1, row=5]")


def test_an_executor_is_cut_off_in_the_midst_of_its_rows_and_before_it_commits() -> None:
    found = lost(RUN, FIRST, ROW, COMMIT, END, *MIDDLE)
    assert {one.text for one in found} == {AT_ROW, text("task.commit:before[batch=1, stage=1]")}
    assert all(format_plan(parse(one.text)) == one.text and one.exclusive for one in found)


def test_rows_that_are_not_traced_are_a_place_for_it_where_the_sink_has_them() -> None:
    (found,) = lost(RUN, END, *MIDDLE)
    assert (found.text, found.seen_once) == (text("task.row:before[batch=1, row=5]"), True)
    assert lost(RUN, END, *MIDDLE, phases=frozenset({"task.run", "file"})) == []


def test_of_tasks_that_write_nothing_or_send_requests_there_is_none() -> None:
    assert lost(RUN, ROW, COMMIT, END, NEXT) == []
    asked = [{**REQUEST, "batch": 2}]
    assert lost(RUN, ROW, COMMIT, END, MIDDLE[0], *asked, *MIDDLE[1:]) == []


def test_where_no_small_batch_is_swept_the_certificate_says_so() -> None:
    here = space_of(question(RUN, ROW, COMMIT, END, *MIDDLE, roles={"middle": 2}))
    (gap,) = (one for one in here.impossible if one.action == "partition(executor)")
    assert gap.reason == "neither of the first two batches is swept and followed by another one"


def test_where_machines_cannot_be_cut_off_the_certificate_says_so() -> None:
    needs = "partition(executor) needs --env docker"

    def refused(plan: Plan) -> str | None:
        return needs if "partition" in format_plan(plan) else None

    here = question(RUN, ROW, COMMIT, END, *MIDDLE, refusal=refused)
    gaps = [gap for gap in space_of(here).impossible if gap.action == "partition(executor)"]
    assert {gap.reason for gap in gaps if isinstance(gap, Gap)} == {needs}
