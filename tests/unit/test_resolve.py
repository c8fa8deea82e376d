"""Plans held against a sink and a master: what is refused before anything starts, and what has to be loaded."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from onceproof.faults import (
    ALWAYS_REPORTED,
    UNKNOWN,
    Action,
    Fault,
    Plan,
    PlanError,
    Point,
    ResolvedPlan,
    SinkShape,
    format_plan,
    parse,
    parse_located,
    phases_of,
    resolve,
)
from onceproof.faults.resolution import TRACED_ROWS
from onceproof.harness.trial.act import line_filter

FOREACH = SinkShape(foreach_batch=True, python_file="/sinks/postgres_upsert.py", lines=frozenset({10, 12, 20, 21, 30}))
KAFKA = SinkShape(v2=True, python_file="/sinks/kafka_append.py", lines=frozenset({9}))
PYTHON = SinkShape(
    v2=True, python_source=True, kafka_transactions=True, python_file="two_phase.py", lines=frozenset({5, 6})
)


def resolved(text: str, shape: SinkShape = UNKNOWN, master: str = "local[2]", *, network: bool = False) -> ResolvedPlan:
    return resolve(parse_located(text), shape, master, network=network)


def refusal(text: str, shape: SinkShape = UNKNOWN, master: str = "local[2]", *, network: bool = False) -> PlanError:
    with pytest.raises(PlanError) as caught:
        resolved(text, shape, master, network=network)
    return caught.value


def test_a_phase_that_the_sink_cannot_have_is_refused_with_those_it_has() -> None:
    error = refusal("task.commit:before[batch=1] -> kill(driver)", FOREACH)
    assert (error.line, error.column, error.offending) == (1, 1, "task.commit")
    assert error.message == (
        "postgres_upsert.py has no task.commit (only for V2 sinks): its phases are query.start:before, "
        "batch.plan:before, batch.offsets:before, batch.offsets:after, sink.write:before, sink.write:after, "
        "task.run:before, task.run:after, task.input:before, batch.commit:before, batch.commit:after, "
        "query.stop:before, line[postgres_upsert.py:N], "
        "call[FUNCTION]:before, call[FUNCTION]:after, jvm[CLASS#METHOD]:before, jvm[CLASS#METHOD]:after"
    )


@pytest.mark.parametrize("shape", [FOREACH, KAFKA, PYTHON], ids=["foreach", "kafka", "python"])
def test_a_refused_phase_is_told_with_each_that_the_sink_has(shape: SinkShape) -> None:
    told = refusal("sink.manifest:before -> kill(driver)", shape).message.partition("its phases are ")[2]
    assert {re.split(r"[\[:]", one)[0] for one in told.split(", ")} == {phase.name for phase, _ in phases_of(shape)}


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("sink.write:after -> pause(driver) until sink.commit:after", 41),
        ("sink.write:after -> kill(driver) with hold(task.row:before[row=1])", 44),
        ("at(1s) -> kill(driver); txn.prepare:after -> kill(broker)", 25),
    ],
)
def test_every_point_of_a_plan_is_held_against_the_sink(text: str, column: int) -> None:
    assert refusal(text, FOREACH).column == column


def test_an_unknown_sink_may_have_every_phase() -> None:
    assert resolved("task.commit:before -> kill(driver); txn.prepare:after -> kill(broker); line[a.py:1] -> fail")


def test_a_transactional_phase_needs_a_sink_with_kafka_transactions() -> None:
    assert "(only for sinks with Kafka transactions)" in refusal("txn.prepare:after -> kill(broker)", KAFKA).message
    assert resolved("txn.prepare:after -> kill(broker)", PYTHON).broker_phases == {"txn.prepare"}


def test_a_plan_without_a_text_is_refused_at_the_place_in_its_canonical_text() -> None:
    plan = Plan((Fault(Point("task.commit", "before", {"batch": 1}), (Action("kill", "driver"),)),))
    with pytest.raises(PlanError) as caught:
        resolve(plan, FOREACH, "local[2]")
    assert caught.value.text == "task.commit:before[batch=1] -> kill(driver)"


def test_a_plan_made_by_hand_is_checked_against_the_vocabulary() -> None:
    plan = Plan((Fault(Point("sink.write", "before", {"btch": 1}), (Action("kill", "driver"),)),))
    with pytest.raises(PlanError, match="did you mean batch"):
        resolve(plan, UNKNOWN, "local[2]")


def test_a_single_edge_is_filled_in() -> None:
    plan = Plan((Fault(Point("query.start"), (Action("kill", "driver"),)),))
    at = resolve(plan, UNKNOWN, "local[2]").plan.faults[0].at
    assert at == Point("query.start", "before")


@pytest.mark.parametrize("action", ["kill", "stop", "pause"])
@pytest.mark.parametrize("executor", ["executor", "executor[1]"])
def test_an_executor_is_refused_on_a_local_master(action: str, executor: str) -> None:
    text = f"task.run:before -> {action}({executor}{', for=1s' if action == 'pause' else ''})"
    error = refusal(text, master="local[2]")
    assert error.offending == "executor"
    assert error.message == (f"{action}({executor}) needs --master standalone: on local[2] tasks run in the driver")
    assert resolved(text, master="standalone")


def test_an_executor_that_is_named_by_its_number_is_struck_at_any_point() -> None:
    for at in ("sink.commit:before[batch=1]", "line[two_phase.py:5]", "txn.prepare:after", "at(3s)"):
        for action in ("kill(executor[0])", "stop(executor[1])", "pause(executor[0], for=2s) then resume(executor)"):
            found = resolved(f"{at} -> {action}", PYTHON, "standalone")
            assert ("task.run", "before") in found.executor_points
    cut = "sink.commit:before -> partition(executor[0], for=2s)"
    assert resolved(cut, PYTHON, "standalone", network=True)
    assert "partition(executor[0]) needs --env docker" in refusal(cut, PYTHON, "standalone").message
    error = refusal("sink.commit:before -> kill(driver[1])", PYTHON, "standalone")
    assert (error.offending, error.message) == ("1", "the number in driver[1] of kill is for executor only")


def test_an_executor_needs_a_point_at_which_one_is_parked() -> None:
    error = refusal("sink.commit:before -> kill(executor)", PYTHON, "standalone")
    assert (
        "needs a point of a task, or a number (executor[0]), and sink.commit stops the driver JVM: valid: task.run, "
        "task.open, task.input, task.row, task.commit, task.abort" in error.message
    )
    assert resolved("task.commit:before -> kill(executor)", PYTHON, "standalone")
    assert resolved("at(3s) -> kill(executor)", PYTHON, "standalone")


def test_an_executor_is_struck_where_its_task_asks_for_something_or_changes_a_file() -> None:
    for at in ('request:before[kind="INSERT", partition=0]', "file:after[attempt=0]"):
        found = resolved(f"{at} -> pause(executor, longest=9s) until batch.commit:after", UNKNOWN, "standalone")
        assert ("task.run", "before") in found.executor_points
    message = refusal('request:before[kind="INSERT"] -> kill(executor)', UNKNOWN, "standalone").message
    assert message.endswith("task.abort, or any with stage, partition or attempt")


def test_a_plan_gives_its_trial_executors_whatever_master_the_others_have() -> None:
    text = "set master = standalone; task.run:before -> kill(executor)"
    assert resolved(text, master="local[2]").master == "standalone"
    with pytest.raises(PlanError) as caught:
        resolve(parse(text), UNKNOWN, "local[2]", cluster=False)
    assert caught.value.message == "there is no cluster here: --master standalone"


def test_a_worker_needs_a_task_that_one_serves() -> None:
    assert resolved("task.row:before[row=5] -> kill(worker)", PYTHON)
    for text in ("sink.write:before -> kill(worker)", "task.commit:before -> kill(worker)", "at(1s) -> kill(worker)"):
        error = refusal(text, PYTHON)
        assert "serves the parked task: valid: task.row" in error.message
        assert error.offending == "worker"
    assert "kafka_append.py has none" in refusal("task.row:before[row=5] -> kill(worker)", KAFKA).message
    assert "postgres_upsert.py has none" in refusal("task.run:before -> kill(worker)", FOREACH).message


@pytest.mark.parametrize("text", ["sink.write:after -> kill(broker)", "at(3s) -> pause(broker, for=1s)"])
def test_a_broker_needs_a_point_at_which_one_is_parked(text: str) -> None:
    valid = "txn.end, txn.prepare, txn.marker, txn.complete"
    assert f"needs which=, or a point that stops a broker: valid: {valid}" in refusal(text, PYTHON).message
    assert "postgres_upsert.py has none" in refusal(text, FOREACH).message
    assert resolved("txn.prepare:after -> kill(broker)", PYTHON)


def test_a_topic_has_no_more_copies_than_there_are_brokers() -> None:
    plan = parse("set copies = 2; sink.write:before -> fail")
    assert resolve(plan, FOREACH, "local[2]", brokers=2)
    with pytest.raises(PlanError, match=r"cannot have 2 copies, one on each broker: there is 1: --brokers 2"):
        resolve(plan, FOREACH, "local[2]", brokers=1)


def test_a_broker_is_not_paused_without_an_end() -> None:
    """The job waits for it, and a job that waits for a service is not idle: its deadline never comes."""
    where = "sink.write:before -> pause(broker, which=broker1{}) until sink.write:after"
    assert resolved(where.format(", longest=9s"), FOREACH)
    with pytest.raises(PlanError, match=r"at the latest, as in pause\(broker, longest=30s\) until"):
        resolved(where.format(""), FOREACH)
    assert resolved("sink.write:before -> pause(driver) until sink.write:after", FOREACH)


def test_a_broker_that_is_named_is_killed_at_any_point() -> None:
    text = "sink.write:before[batch=1] -> kill(broker, which=coordinator) then restart(broker, after=1s)"
    assert resolved(text, FOREACH)
    assert resolved("at(3s) -> pause(broker, which=leader, for=1s)", FOREACH)
    plan = parse("sink.write:before -> kill(broker, which=broker2)")
    assert resolve(plan, FOREACH, "local[2]", brokers=2)
    with pytest.raises(PlanError, match="there is no broker2: --brokers is 1 here"):
        resolve(plan, FOREACH, "local[2]", brokers=1)


@pytest.mark.parametrize(
    "which",
    ['"leader(events-0)"', '"followers(*_out-2)"', '"coordinator(t*-0)"', '"group_coordinator(mine)"', "followers"],
)
def test_a_broker_is_named_by_what_it_is_to_something(which: str) -> None:
    plan = parse(f"sink.write:before -> kill(broker, which={which})")
    assert resolve(plan, FOREACH, "local[2]", brokers=3)
    assert parse(format_plan(plan)) == plan


@pytest.mark.parametrize(
    ("which", "message"),
    [
        ('"controller(events-0)"', r"which is no controller\(events-0\): with a name it is coordinator\(a transac"),
        ('"leader(events)"', r"leader\(...\) takes TOPIC-PARTITION, such as events-0, not 'events'"),
        ('"coordinator()"', r"coordinator\(...\) takes a transactional id, not ''"),
        ("followers", "which=followers needs more than one broker: --brokers is 1 here"),
        ("group_coordinator", r"needs a point that names a group, or its name \(group_coordinator\(NAME\)\)"),
    ],
)
def test_a_broker_that_nothing_can_be_is_refused(which: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        resolve(parse(f"sink.write:before -> kill(broker, which={which})"), FOREACH, "local[2]", brokers=1)


def test_the_process_that_reaches_a_point_is_killed_wherever_it_is_but_in_a_broker() -> None:
    for text in ("sink.write:after", "line[two_phase.py:5]", "task.run:before"):
        assert resolved(f"{text} -> kill(self)", PYTHON)
    assert (
        "txn.prepare stops the broker: write kill(broker)" in refusal("txn.prepare:after -> kill(self)", PYTHON).message
    )
    assert "kill(self) needs a point: at(...) stops no process" in refusal("at(3s) -> kill(self)", PYTHON).message


def test_a_server_is_killed_only_for_a_sink_that_uses_it() -> None:
    text = "sink.write:after[batch=1] -> kill(redis) then restart(redis, after=2s)"
    using = replace(FOREACH, services=frozenset({"redis"}))
    assert resolved(text, using)
    assert resolved(text, UNKNOWN)
    error = refusal(text, replace(FOREACH, services=frozenset({"postgres"})))
    assert error.message == (
        "kill(redis) needs a sink that uses redis: the SERVICES of postgres_upsert.py are postgres"
    )


def test_a_node_is_killed_only_where_it_is_a_machine_of_its_own() -> None:
    text = "task.commit:before[batch=1] -> kill(node)"
    assert "kill(node) needs --env docker" in refusal(text, PYTHON, "standalone").message
    assert ("task.run", "before") in resolve(parse(text), PYTHON, "standalone", network=True).executor_points
    with pytest.raises(PlanError, match="kill\\(node\\) needs a point of a task"):
        resolve(parse("sink.write:before -> kill(node)"), PYTHON, "standalone", network=True)


@pytest.mark.parametrize(
    "text",
    [
        "sink.write:before[batch=1] -> partition(driver, peer=broker2, for=20s)",
        "at(3s) -> partition(driver, for=20s)",
        "task.run:before -> partition(executor, peer=broker1, for=1s)",
        "at(3s) -> partition(executor, for=1s)",
        "txn.prepare:after -> partition(broker, peer=broker1, for=1s)",
    ],
)
def test_a_partition_needs_machines_with_a_network_between_them(text: str) -> None:
    error = refusal(text, PYTHON, "standalone")
    target = text.split("partition(")[1].split(",")[0]
    assert (error.column, error.offending) == (text.index("partition") + 1, "partition")
    assert error.message == f"partition({target}) needs --env docker: in the local environment all machines are one"
    assert resolved(text, PYTHON, "standalone", network=True)


def test_a_plan_is_refused_at_its_partition_wherever_that_stands() -> None:
    text = "sink.write:before -> delay(1s);\n  sink.write:after -> kill(driver) then partition(driver, for=1s)"
    error = refusal(text)
    assert (error.line, error.column) == (2, 41)


def test_the_coordinator_of_a_group_is_that_of_the_points_group() -> None:
    kafka = SinkShape(foreach_batch=True, services=frozenset({"kafka"}))
    assert resolved("group.commit:before -> kill(broker, which=group_coordinator)", kafka)
    message = refusal("sink.write:before -> kill(broker, which=group_coordinator)", kafka).message
    assert (
        "group_coordinator needs a point that names a group, or its name (group_coordinator(NAME)): valid: group.commit"
        in message
    )


def test_a_partition_acts_where_a_kill_does() -> None:
    text = "task.run:before -> partition(executor, for=1s)"
    assert "needs --master standalone" in refusal(text, PYTHON, network=True).message
    text = "sink.commit:before -> partition(executor, for=1s)"
    assert "needs a point of a task" in refusal(text, PYTHON, "standalone", network=True).message
    for point in ("sink.write:after", "at(3s)"):
        error = refusal(f"{point} -> partition(broker, for=1s)", PYTHON, network=True)
        assert "or a point that stops a broker: valid: txn.end, txn.prepare, txn.marker" in error.message
    for point in ("query.start", "task.run:after", "line[two_phase.py:5]", "txn.prepare:after", "at(3s)"):
        assert resolved(f"{point} -> partition(driver, for=1s)", PYTHON, network=True)


def test_fail_needs_a_stopped_thread_that_can_raise() -> None:
    assert "cannot act" in refusal("txn.prepare:after -> fail").message
    assert "at(...) stops none" in refusal("at(3s) -> fail").message
    assert "at(...) stops none" in refusal("at(3s) -> delay(2s)").message
    assert resolved("sink.commit:before -> fail; task.run:before -> fail; line[a.py:1] -> fail")


def test_a_python_exception_is_refused_in_the_jvm() -> None:
    error = refusal("sink.commit:before -> fail(error=psycopg.OperationalError)")
    assert error.offending == "error=psycopg.OperationalError"
    assert "RuntimeException" in error.message
    assert resolved("sink.commit:before -> fail(message=disk)")
    assert resolved("line[a.py:1] -> fail(error=psycopg.OperationalError)")


def test_only_a_line_may_fail_after_its_execution() -> None:
    error = refusal("sink.commit:before[batch=1] -> fail(after=true)")
    assert error.offending == "after=true"
    assert error.message == (
        "sink.commit stops the driver JVM, where a step has another edge for that: leave after out"
    )
    assert resolved("sink.commit:before -> fail; line[a.py:1] -> fail(after=true)")


def test_a_restart_needs_a_kill_before_it_in_its_fault() -> None:
    assert resolved("sink.commit:before -> kill(driver) then restart(driver, after=2s)")
    for text in (
        "sink.commit:before -> restart(driver, after=2s)",
        "sink.commit:before -> restart(driver) then kill(driver)",
        "txn.prepare:after -> kill(broker) then restart(driver)",
        "sink.commit:before -> kill(driver); sink.write:before -> restart(driver)",
    ):
        assert "restart(driver) needs a kill(driver) before it in its fault" in refusal(text).message


def test_a_resume_needs_a_pause_in_the_plan() -> None:
    assert "needs a pause(broker) in the plan" in refusal("sink.commit:before -> resume(broker)").message
    assert resolved("sink.commit:before -> resume(broker); txn.prepare:after -> pause(broker, for=9s)")


@pytest.mark.parametrize("file", ["postgres_upsert.py", "sinks/postgres_upsert.py", "/sinks/postgres_upsert.py"])
def test_a_line_names_the_file_of_the_sink(file: str) -> None:
    assert resolved(f"line[{file}:20] -> kill(driver)", FOREACH).lines == {("postgres_upsert.py", 20)}


def test_a_lines_batches_are_known_where_all_that_names_it_has_one() -> None:
    plan = (
        "line[postgres_upsert.py:20][batch=1]#2 -> pause(driver) until line[postgres_upsert.py:20][batch=3]; "
        "line[postgres_upsert.py:21][batch=1] -> fail; line[postgres_upsert.py:21] -> kill(driver)"
    )
    found = resolved(plan, FOREACH)
    assert found.line_batches == {("postgres_upsert.py", 20): {1, 3}}
    assert line_filter(found) == "postgres_upsert.py:20@1@3,postgres_upsert.py:21"


@pytest.mark.parametrize("file", ["upsert.py", "other/postgres_upsert.py", "a/b/sinks/postgres_upsert.py"])
def test_a_line_of_another_file_is_refused(file: str) -> None:
    error = refusal(f"line[{file}:20] -> kill(driver)", FOREACH)
    assert error.column == 6
    assert "lines are those of postgres_upsert.py" in error.message


TEAM = SinkShape(
    foreach_batch=True,
    python_file="/app/thin.py",
    modules={
        "thin.py": frozenset(),
        "team/writer.py": frozenset({42}),
        "team/ledger.py": frozenset({7}),
        "old/ledger.py": frozenset({7}),
    },
)


@pytest.mark.parametrize("file", ["team/writer.py", "writer.py", "app/team/writer.py", "/app/team/writer.py"])
def test_a_line_may_be_one_of_a_module_of_the_sinks_directory_and_is_named_from_there(file: str) -> None:
    line = f"line[{file}:42]"
    plan = resolved(f"{line} -> pause(driver) until {line}#2; sink.write:before -> fail with hold({line})", TEAM)
    assert plan.lines == {("team/writer.py", 42)}
    paused, failed = plan.plan.faults
    assert paused.actions[0].until
    points = [paused.at, paused.actions[0].until, *failed.holds]
    assert [point.where["file"] for point in points if isinstance(point, Point)] == ["team/writer.py"] * 3


def test_a_line_of_a_file_that_the_sink_does_not_import_or_that_may_be_two_is_refused() -> None:
    assert refusal("line[team/reader.py:42] -> fail", TEAM).message == (
        "team/reader.py is neither the sink's file nor a module of its directory that it imports: "
        "lines are those of thin.py, team/writer.py, team/ledger.py or old/ledger.py"
    )
    message = refusal("line[ledger.py:7] -> fail", TEAM).message
    assert message == "ledger.py may be team/ledger.py or old/ledger.py: name one of them"
    assert refusal("line[thin.py:3] -> fail", TEAM).message.endswith("it has none")
    assert "the nearest start at 42" in refusal("line[writer.py:41] -> fail", TEAM).message


def test_a_trace_reports_the_lines_of_every_module_of_a_thin_sink() -> None:
    lines = resolve(parse(""), TEAM, "local[2]", trace=True).lines
    assert lines == {("team/writer.py", 42), ("team/ledger.py", 7), ("old/ledger.py", 7)}


def test_a_sink_whose_code_runs_in_no_batch_has_no_lines() -> None:
    error = refusal("line[kafka_append.py:9] -> kill(driver)", KAFKA)
    assert "(only for sinks whose Python code runs in a batch)" in error.message
    assert resolve(parse(""), KAFKA, "local[2]", trace=True).lines == frozenset()


@pytest.mark.parametrize(("line", "near"), [(15, "10, 12, 20 or 21"), (1, "10 or 12"), (99, "21 or 30")])
def test_a_line_without_code_is_refused_with_the_nearest_that_have_some(line: int, near: str) -> None:
    error = refusal(f"line[postgres_upsert.py:{line}] -> kill(driver)", FOREACH)
    assert error.message == (
        f"no statement inside a function starts at line {line} of postgres_upsert.py: the nearest start at {near}"
    )


PARTS_OF_A_RECOVERY = {("task.run", "before"), ("state.load", "before"), ("state.load", "after")}
"""What a recovery from a driver's death is measured by, besides what is always reported."""


def test_a_plan_that_ends_a_driver_reports_the_parts_of_its_recovery() -> None:
    kill, stateless = "sink.write:after -> kill(driver)", SinkShape(foreach_batch=True)
    assert resolved(kill, replace(stateless, stateful=True)).executor_points == PARTS_OF_A_RECOVERY
    assert resolved(kill, stateless).executor_points == {("task.run", "before")}
    assert not resolved("sink.write:after -> delay(1s)", stateless).executor_points


def test_a_plan_loads_what_its_points_need_and_no_more() -> None:
    plan = resolved(
        "sink.commit:after -> kill(driver) with hold(task.commit:before); task.row:before[row=7] -> delay(1s); "
        "batch.offsets:before -> pause(driver) until task.row:before[row=9]"
    )
    assert plan.driver_points == ALWAYS_REPORTED | {("sink.commit", "after"), ("batch.offsets", "before")}
    assert plan.executor_points == {("task.commit", "before"), ("task.row", "before"), *PARTS_OF_A_RECOVERY}
    assert plan.broker_points == frozenset()
    assert plan.rows == {7, 9}
    assert plan.lines == frozenset()


def test_an_empty_plan_reports_what_is_always_reported() -> None:
    plan = resolved("")
    assert plan.driver_points == ALWAYS_REPORTED
    assert plan.executor_points | plan.broker_points == frozenset()
    assert plan.rows | plan.lines == frozenset()


def test_a_plan_that_names_a_stage_reports_the_starts_of_tasks_by_which_they_are_numbered() -> None:
    for text in (
        "task.commit:after[stage=2] -> kill(driver)",
        "sink.commit:before -> kill(driver) with hold(task.commit:before[stage=1])",
    ):
        assert resolved(text).executor_points >= {("task.run", "before")}
    assert ("task.run", "before") not in resolved("task.commit:after -> delay(1s)").executor_points
    assert "at least 1" in refusal_of("task.commit:after[stage=0] -> kill(driver)")


def refusal_of(text: str) -> str:
    with pytest.raises(PlanError) as caught:
        parse(text)
    return caught.value.message


def test_a_fault_on_an_executor_reports_the_attempts_of_tasks() -> None:
    assert ("task.run", "before") in resolved(
        "task.commit:after -> kill(executor)", master="standalone"
    ).executor_points


def test_a_trace_reports_every_point_but_those_of_brokers() -> None:
    plan = resolve(parse(""), PYTHON, "local[2]", trace=True)
    of_driver = {"query.start", "batch.offsets", "sink.write", "sink.commit", "sink.abort", "batch.commit"}
    assert {phase for phase, _ in plan.driver_points} == of_driver
    assert plan.executor_points == {
        ("task.run", "before"),
        ("task.run", "after"),
        ("task.open", "after"),
        ("task.input", "before"),
        ("task.row", "before"),
        ("task.commit", "before"),
        ("task.commit", "after"),
        ("task.abort", "before"),
        ("task.abort", "after"),
    }
    assert plan.broker_phases == frozenset()
    assert plan.rows == TRACED_ROWS
    assert plan.lines == {("two_phase.py", 5), ("two_phase.py", 6)}
