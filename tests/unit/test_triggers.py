"""The triggers that jobs take, and what Spark can run with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from onceproof.faults import SinkShape, parse, resolve
from onceproof.faults.errors import PlanError
from onceproof.harness.errors import UsageError
from onceproof.harness.trial.fault_records import fault_record
from onceproof.harness.triggers import check_execution, check_sweep, check_trigger, trigger_of

KAFKA = SinkShape(v2=True, kafka_sink=True, python_file=str(Path("kafka_append.py")))
CONTINUOUS, ASYNC = "continuous=1 second", "asyncProgress=500 milliseconds"


@pytest.mark.parametrize(
    ("text", "ends", "execution"),
    [
        ("availableNow", True, "micro-batch"),
        ("processingTime=500 milliseconds", False, "micro-batch"),
        ("processingTime=1 second", False, "micro-batch"),
        (ASYNC, False, "async progress"),
        ("realTime=5 seconds", False, "real-time"),
        ("processingTime=0 seconds", False, "micro-batch"),
        (CONTINUOUS, False, "continuous"),
    ],
)
def test_a_trigger_is_taken_as_it_is_written(text: str, ends: bool, execution: str) -> None:
    assert check_trigger(text) == text
    assert (trigger_of(text).ends_by_itself, trigger_of(text).execution) == (ends, execution)


def test_a_job_that_is_told_of_no_trigger_ends_by_itself() -> None:
    assert trigger_of(None).ends_by_itself


@pytest.mark.parametrize(
    "text",
    [
        *("", "once", "realTime=soon", "availableNow=true", "continuous", "5 seconds", "realTime=5 minutes"),
        *("continuous=0 seconds", "realTime=0 milliseconds", "processingTime=\u0663 seconds"),
        "processingTime=99999999999999999999 seconds",
    ],
)
def test_any_other_is_one_clear_line(text: str) -> None:
    with pytest.raises(UsageError, match="is not a trigger: it is one of availableNow, processing") as error:
        check_trigger(text)
    assert "INTERVAL is in milliseconds or seconds" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", [None, "availableNow", "processingTime=1 second"])
def test_every_sink_takes_micro_batches(text: str | None) -> None:
    check_execution(text, SinkShape(foreach_batch=True), 3, "local[1]")
    check_sweep(text)


@pytest.mark.parametrize(
    ("text", "shape", "master", "problem"),
    [
        (CONTINUOUS, SinkShape(foreach_batch=True, python_file="my_sink.py"), "local[3]", "its own Kafka sink only"),
        (ASYNC, SinkShape(v2=True, python_source=True, python_file="my_sink.py"), "local[3]", "its own Kafka sink"),
        (ASYNC, replace(KAFKA, stateful=True), "local[3]", "the job keeps state"),
        ("realTime=5 seconds", replace(KAFKA, refused=frozenset({"udf"})), "local[3]", "has udf, which Spark refuses"),
        (CONTINUOUS, KAFKA, "local[2,4]", r"the source's 3 partitions .* --master local\[3,4\]"),
        (CONTINUOUS, KAFKA, "local[2, 4]", r"the source's 3 partitions .* --master local\[3,4\]"),
        ("realTime=5 seconds", KAFKA, "local[2]", r"the source's 3 partitions .* --master local\[3,4\]"),
    ],
)
def test_what_spark_cannot_run_is_refused_before_it_starts(
    text: str, shape: SinkShape, master: str, problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        check_execution(text, shape, 3, master)


@pytest.mark.parametrize(
    ("text", "master"), [(CONTINUOUS, "local[3,4]"), (ASYNC, "local[1]"), (CONTINUOUS, "standalone")]
)
def test_what_it_can_run_is_not(text: str, master: str) -> None:
    check_execution(text, KAFKA, 3, master)


@pytest.mark.parametrize("text", [CONTINUOUS, ASYNC, "realTime=5 seconds"])
def test_only_batches_that_come_again_as_they_were_are_swept(text: str) -> None:
    with pytest.raises(UsageError, match="does not run the same batches twice"):
        check_sweep(text)


@pytest.mark.parametrize(
    ("execution", "plan", "problem"),
    [
        ("continuous", "sink.write:after -> kill(driver)", "a continuous query has no sink.write: its phases are"),
        ("continuous", "task.commit:before -> fail", "a continuous query has no task.commit"),
        (
            "async progress",
            "batch.commit:after -> kill(driver)",
            "a query with asynchronous progress tracking has no batch.commit:after",
        ),
    ],
)
def test_a_plan_names_only_what_such_a_query_goes_through(execution: str, plan: str, problem: str) -> None:
    with pytest.raises(PlanError, match=problem):
        resolve(parse(plan), replace(KAFKA, execution=execution), "local[3,4]")  # type: ignore[arg-type]


def test_only_micro_batches_must_come_again_with_the_very_input_that_they_had() -> None:
    [fault] = parse("sink.write:after[batch=1] -> kill(driver)").faults
    kinds = [
        {one.kind for one in fault_record(fault, execution).actions[0].requirements}
        for execution in ("micro-batch", "async progress")
    ]
    assert {"replayed", "planned_again"} <= kinds[0]
    assert not {"replayed", "handed_over"} & kinds[1]
