"""A replay in more tasks than its batch had: in a plan, for the drivers that follow, and as points of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from onceproof.assertions.replay import examine
from onceproof.faults import PlanError, SinkShape, parse, resolve
from onceproof.harness.certification.points import Question
from onceproof.harness.certification.space import space_of
from onceproof.harness.trial.source_reading import SourceReading
from paper_trial import Paper, evidence, fault
from test_resolve import refusal

PLAN = "batch.commit:before[batch=1] -> repartition(source, to=7) then kill(driver)"


def test_the_drivers_that_follow_are_told_of_more_partitions() -> None:
    events: list[tuple[str, Mapping[str, Any]]] = []
    source = SourceReading(lambda event, fields: events.append((event, fields)))
    assert (source.arguments, source.properties) == ((), {})
    assert source.repartition(7) == "the drivers that follow read the source in at least 7 partitions"
    assert source.arguments == ("--min-partitions", "7")
    assert source.properties == {"spark.default.parallelism": "7"}
    assert events == [("source.repartitioned", {"partitions": 7})]


REFUSED = {
    "batch.commit:before -> repartition(source, to=7)": "is read by the next driver only: put kill(driver) behind it",
    "batch.commit:before -> repartition(source) then kill(driver)": "repartition needs to",
    "batch.commit:before -> repartition(source, to=0) then kill(driver)": "to takes a whole number of at least 1",
    "at(3s) -> repartition(source, to=7) then kill(driver)": "acts on a stopped thread",
}


@pytest.mark.parametrize("plan", REFUSED)
def test_what_would_change_nothing_is_refused(plan: str) -> None:
    assert REFUSED[plan] in str(refusal(plan, SinkShape(foreach_batch=True)))


@pytest.mark.parametrize("execution", ["continuous", "real-time"])
def test_a_query_whose_tasks_need_a_core_each_is_refused(execution: Any) -> None:
    plan = parse(PLAN.replace("batch.commit:before[batch=1]", "query.start:before"))
    resolve(plan, SinkShape(foreach_batch=True), "local[2]")
    with pytest.raises(PlanError, match=r"repartition\(source\) needs a query that runs micro-batches"):
        resolve(plan, SinkShape(foreach_batch=True, execution=execution), "local[2]")


def test_the_batch_has_to_come_again() -> None:
    paper = Paper().start().batches(1, 0, 1)
    paper.reached(phase="batch.commit", edge="before", batch=1, run="r1", query="q", process="local:1")
    for number, action in enumerate(("repartition(source, to=7)", "kill(driver)")):
        paper.add("fault.fired", fault=0, number=number, action=action, process="local:1")
        paper.add("fault.confirmed", fault=0, number=number, action=action, process="local:1", detail="")
    paper.exited(1, -9, planned=True)
    assert examine(0, evidence(None, paper, fault(PLAN)))[1] is not None
    assert examine(0, evidence(None, paper.start(2).batches(2, 1), fault(PLAN)))[1] is None


def reported(phase: str, edge: str, **fields: Any) -> dict[str, Any]:
    return {"event": "point", "phase": phase, "edge": edge, "batch": 1, "run": "r", "process": "p", **fields}


TASKS = [reported("task.run", "before", stage=0, partition=number) for number in range(3)]
ENDS = [reported("task.run", "after", stage=0, partition=number) for number in range(3)]
COMMIT, COMMITTED = reported("sink.commit", "before"), reported("batch.commit", "before")


def texts(*trace: dict[str, Any], than: str = "more", **more: Any) -> list[str]:
    found: dict[str, Any] = {"roles": {"middle": 1}, "refusal": lambda plan: None, "reference_job": True, **more}
    points = space_of(Question(trace=trace, **found)).points
    return [point.text for point in points if point.detail.startswith(f"replayed in {than} tasks")]


MORE = "repartition(source, to=5) then kill(driver)"


def test_a_half_a_prepared_and_a_whole_batch_come_again_in_more_tasks() -> None:
    assert texts(*TASKS, *ENDS, COMMIT, COMMITTED) == [
        f"task.run:after[batch=1, stage=0]#1 -> {MORE} with hold(task.run:before[batch=1, stage=0]#2)",
        f"sink.commit:before[batch=1] -> {MORE}",
        f"batch.commit:before[batch=1] -> {MORE}",
    ]
    assert texts(*TASKS[:1], *ENDS[:1], COMMITTED) == [f"batch.commit:before[batch=1] -> {MORE.replace('5', '3')}"]


def test_the_first_batch_comes_again_with_the_task_ids_that_it_had() -> None:
    roles = {"first": 1, "middle": 2}
    assert texts(*TASKS, *ENDS, COMMIT, COMMITTED, roles=roles) == [f"batch.commit:before[batch=1] -> {MORE}"]


def test_a_batch_comes_again_in_fewer_tasks_where_the_one_before_had_more() -> None:
    asked = reported("request", "before", service="postgres", kind="COMMIT", text="COMMIT")
    fewer = "repartition(source, to=1) then kill(driver)"
    assert texts(*TASKS, *ENDS, COMMIT, asked, COMMITTED, than="fewer") == [
        f"batch.commit:before[batch=0] -> {MORE}; {at}[{more}batch=1]{nth} -> {fewer}"
        for at, more, nth in (
            ("request:before", "service=postgres, kind=COMMIT, ", "#1"),
            ("sink.commit:before", "", ""),
            ("batch.commit:before", "", ""),
        )
    ]
    assert texts(*TASKS, *ENDS, COMMITTED, than="fewer", reference_job=False) == []


def test_jobs_that_may_not_know_how_and_quick_sweeps_have_none() -> None:
    assert texts(*TASKS, *ENDS, COMMITTED, reference_job=False) == []
    assert texts(*TASKS, *ENDS, COMMITTED, profile="quick") == []
    assert texts(COMMITTED) == [], "no task was seen"
