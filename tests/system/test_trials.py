"""The reference sinks under real kills at exact steps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from onceproof.harness.certification.certify import certify
from onceproof.harness.certification.wanted import Wanted
from onceproof.harness.environment_options import EnvironmentOptions
from onceproof.harness.request import Request
from onceproof.harness.session import Session
from onceproof.harness.sinks import find_sink
from trials import (
    EVERY_SINK,
    SMALL,
    TWO_PHASE,
    Run,
    described,
    flaw_of,
    keeps_its_connection,
    landed,
    line_of,
    long,
    raises_on_replay,
)

CORRECT = ["postgres_upsert", "postgres_ledger", "kafka_transactional"]


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("sink", CORRECT)
def test_a_correct_sink_is_exactly_once_at_each_step_at_which_the_driver_dies(
    session: Session, tmp_path: Path, sink: str
) -> None:
    steps = EVERY_SINK + (TWO_PHASE if sink == "kafka_transactional" else ())
    wanted = Wanted(profile="demo", points=",".join(steps), parallel=1)
    certificate = certify(session, Request(sink, workload=SMALL), tmp_path / "sweep", wanted)
    assert {point.cell[0] for point in certificate.points} == set(steps)
    for point in certificate.points:
        assert (point.verdict, point.guarantee) == ("pass", "exactly-once"), point.reason
        assert point.landed


@pytest.mark.long
def test_the_kafka_sink_duplicates_the_rows_of_a_replayed_batch(trial: Run) -> None:
    result = trial("kafka_append", "sink.commit:after[batch=1] -> kill(driver)", claim="exactly-once")
    assert result.verdict.outcome == "fail"
    assert result.verdict.guarantee == "at-least-once"
    (duplicated,) = result.verdict.anomalies
    assert (duplicated.kind, list(duplicated.batches)) == ("duplicated", [1])
    assert duplicated.count == result.verdict.records["batch_sizes"][1]
    assert any("replay by the restarted driver" in cause for cause in duplicated.causes)


WRITES_BATCHES_TO_KAFKA = """
from pyspark.sql.functions import concat_ws, struct, to_json

GUARANTEE = "at-least-once"
SERVICES = ("kafka",)


def write_batch(df, batch_id, target):
    rows = df.select(concat_ws("|", *target.key).alias("key"), to_json(struct("*")).alias("value"))
    rows.write.format("kafka").option("kafka.bootstrap.servers", target.kafka).option("topic", target.topic).save()
"""


def test_a_task_of_foreach_batch_fails_at_a_row_that_it_writes_to_kafka(trial: Run, tmp_path: Path) -> None:
    (tmp_path / "writes_batches.py").write_text(WRITES_BATCHES_TO_KAFKA)
    result = trial(str(tmp_path / "writes_batches.py"), "task.row:before[batch=1, partition=0, row=5] -> fail")
    assert result.verdict.outcome == "pass", result.verdict.reason
    assert [fault.confirmed for fault in result.verdict.faults] == [True]
    log = "".join(file.read_text() for file in result.directory.rglob("*.log"))
    raised = log.index("java.lang.RuntimeException: injected by onceproof at task.row:before")
    assert "KafkaWriteTask.execute" in log[raised : raised + 6000]


@pytest.mark.long
@pytest.mark.parametrize("step", ["batch.plan:before[batch=1]", "query.stop:before"])
def test_a_driver_that_dies_before_a_batch_or_behind_the_last_one_is_followed_by_another(trial: Run, step: str) -> None:
    result = trial("postgres_append", f"{step} -> kill(driver)")
    assert result.verdict.outcome == "pass", result.verdict.reason
    assert (result.verdict.guarantee, landed(result)) == ("exactly-once", True)


@pytest.mark.long
def test_the_kafka_sink_keeps_its_own_claim(trial: Run) -> None:
    result = trial("kafka_append", "sink.commit:after[batch=1] -> kill(driver)")
    assert (result.verdict.outcome, result.verdict.exactly_once) == ("pass", "fail")


def test_a_fault_that_is_never_reached_is_inconclusive(trial: Run) -> None:
    result = trial("postgres_upsert", "sink.write:after[batch=999] -> kill(driver)")
    assert result.verdict.outcome == "inconclusive"
    assert "sink.write:after[batch=999]" in result.verdict.reason
    assert result.verdict.guarantee is None


@pytest.mark.long
def test_a_run_without_a_fault_passes_and_says_so(trial: Run) -> None:
    result = trial("postgres_upsert")
    assert result.verdict.outcome == "pass"
    assert "no fault was planned" in result.verdict.reason


@pytest.mark.long
def test_one_transaction_committed_and_one_open_is_completed_by_the_replay(trial: Run) -> None:
    line = line_of("kafka_transactional", "coordinators.commit(transaction)")
    result = trial("kafka_transactional", f"line[kafka_transactional.py:{line}][batch=1]#2 -> kill(driver)")
    assert result.verdict.outcome == "pass", described(result)
    assert landed(result)


@pytest.mark.long
def test_a_coordinator_that_dies_with_a_prepared_commit_finishes_it(trial: Run) -> None:
    result = trial("kafka_transactional", "txn.prepare:after -> kill(broker)")
    assert result.verdict.outcome == "pass", described(result)
    assert landed(result)


@pytest.mark.long
def test_a_coordinator_that_stands_still_for_a_while_goes_on(trial: Run) -> None:
    result = trial("kafka_transactional", "txn.prepare:after -> pause(broker, for=2s)")
    assert result.verdict.outcome == "pass", described(result)
    assert landed(result)


@pytest.mark.long
def test_first_task_ended_and_no_other_begun_duplicates_one_partition_of_the_kafka_sink(trial: Run) -> None:
    plan = "task.run:after[batch=1]#1 -> kill(driver) with hold(task.run:before[batch=1]#2)"
    result = trial("kafka_append", plan)
    (duplicated,) = result.verdict.anomalies
    assert (duplicated.kind, len(duplicated.partitions)) == ("duplicated", 1)
    assert 0 < duplicated.count < result.verdict.records["batch_sizes"][1]


@pytest.mark.long
@pytest.mark.parametrize("more", ["", "application_name='ledger'"])
def test_a_connection_that_prepare_and_read_keep_open_is_not_the_jobs(trial: Run, tmp_path: Path, more: str) -> None:
    sink = tmp_path / "pooled_ledger.py"
    sink.write_text(keeps_its_connection(more))
    result = trial(sink, "sink.write:after[batch=1] -> kill(driver)")
    assert result.verdict.outcome == "pass", described(result)
    assert landed(result)


@pytest.mark.long
def test_a_connection_that_read_keeps_is_lost_with_the_server_or_the_trial_and_made_anew(
    trial: Run, tmp_path: Path
) -> None:
    sink = tmp_path / "pooled_ledger.py"
    sink.write_text(keeps_its_connection(""))
    for part in ("driver", "postgres"):
        result = trial(sink, f"sink.write:after[batch=1] -> kill({part})")
        assert result.verdict.outcome == "pass", described(result)
        assert landed(result)
        readings = [event for event in result.journal if event["event"] == "reading"]
        assert {reading["error"] for reading in readings} == {None}


@pytest.mark.long
def test_a_sink_that_raises_on_every_replay_is_stuck(trial: Run, tmp_path: Path) -> None:
    sink = tmp_path / "raises_on_replay.py"
    sink.write_text(raises_on_replay())
    result = trial(sink, "sink.write:after[batch=1] -> kill(driver)")
    assert result.verdict.outcome == "fail"
    assert [anomaly.kind for anomaly in result.verdict.anomalies] == ["stuck"]
    assert "batch 1 was seen before" in str(result.verdict.anomalies[0])


BROKEN = {
    "postgres_insert": ("sink.write:after[batch=1] -> kill(driver)", None),
    "ledger_not_atomic": ("line[{here}][batch=1] -> kill(driver)", "cursor.execute(RECORD, batch)"),
    "commit_in_task": ("task.commit:after[batch=1] -> kill(driver)", None),
    "swallows_errors": ("line[{here}][batch=1] -> fail", "cursor.executemany("),
    "ledger_before_rows": ("line[{here}][batch=1] -> kill(driver)", "cursor.executemany("),
    "commit_without_decision": ("sink.commit:after[batch=1] -> kill(driver)", None),
    "tidies_up": ("line[{here}][batch=1] -> kill(driver)", "cursor.execute(TIDY_UP)"),
}
"""The fault under which each broken sink breaks, and what stands on the line that it names."""


OF_A_KIND = (
    "tidies_up",
    "postgres_insert",
    "ledger_not_atomic",
    "ledger_before_rows",
    "commit_in_task",
    "commit_without_decision",
)
"""Those whose way of going wrong another one shows as well."""


DEALS = 6
"""So many restarts are tried until one deals the partitions to other tasks."""


@pytest.mark.parametrize("sink", [long(sink) if sink in OF_A_KIND else sink for sink in BROKEN])
def test_a_broken_sink_fails_with_the_anomaly_that_its_file_says(trial: Run, sink: str) -> None:
    plan, text = BROKEN[sink]
    here = f"{sink}.py:{line_of(sink, text)}" if text else ""
    result = trial(sink, plan.format(here=here))
    assert result.verdict.outcome == "fail", described(result)
    assert tuple(anomaly.kind for anomaly in result.verdict.anomalies) == flaw_of(sink)


@pytest.mark.long
@pytest.mark.parametrize("sink", BROKEN)
def test_a_broken_sink_is_right_when_nothing_fails(trial: Run, sink: str) -> None:
    assert trial(sink).verdict.outcome == "pass"


@pytest.mark.long
def test_a_ledger_by_task_is_right_when_nothing_fails(trial: Run) -> None:
    assert trial("ledger_by_task").verdict.outcome == "pass"


@pytest.mark.long
def test_a_ledger_by_task_skips_and_repeats_where_a_replay_deals_partitions_to_other_tasks(trial: Run) -> None:
    """One task is done, no other has begun. Which task the restart gives a partition to is its own: it is tried until
    they differ."""
    plan = "task.run:after[batch=1]#1 -> kill(driver) with hold(task.run:before[batch=1]#2)"
    for _ in range(DEALS):
        result = trial("ledger_by_task", plan)
        assert landed(result), described(result)
        if result.verdict.outcome == "fail":
            break
    assert tuple(sorted(anomaly.kind for anomaly in result.verdict.anomalies)) == ("duplicated", "lost"), described(
        result
    )


@pytest.mark.long
def test_a_driver_is_started_again_only_after_the_time_that_the_plan_says(trial: Run) -> None:
    result = trial("postgres_upsert", "sink.write:after[batch=1] -> kill(driver) then restart(driver, after=3s)")
    assert result.verdict.outcome == "pass", described(result)
    assert landed(result)
    (died,) = [event["t"] for event in result.journal if event["event"] == "driver.exited" and event["planned"]]
    _, again = [event["t"] for event in result.journal if event["event"] == "driver.started"]
    assert again - died >= 3


@pytest.mark.long
def test_what_is_tidied_up_before_the_end_is_seen_only_by_readings_while_the_job_runs(trial: Run) -> None:
    plan = f"line[tidies_up.py:{line_of('tidies_up', 'cursor.execute(TIDY_UP)')}][batch=1] -> kill(driver)"
    result = trial("tidies_up", plan, watch=False)
    assert (result.verdict.outcome, result.verdict.guarantee) == ("pass", "exactly-once"), described(result)
    assert landed(result)
    assert not [event for event in result.journal if event["event"] == "reading" and "watch" in event]


HIDES = """

def read(target):
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT DISTINCT * FROM events").fetchall()


def cleanup(target):
    raise OSError("no luck")
"""


@pytest.mark.long
def test_what_a_reader_hides_is_noted_and_a_failing_cleanup_is_a_warning(trial: Run, tmp_path: Path) -> None:
    sink = tmp_path / "hides.py"
    sink.write_text(find_sink("postgres_insert").read_text() + HIDES)
    result = trial(sink, "sink.write:after[batch=1] -> kill(driver)")
    assert result.verdict.outcome == "pass", described(result)
    hidden, rows = result.verdict.records["batch_sizes"][1], result.verdict.records["expected"]
    (note,) = result.verdict.notes
    assert note == f"read() hides {hidden} of {rows + hidden} rows (in the target lie: table events {rows + hidden})"
    (warning,) = result.warnings
    assert warning.startswith("the sink's cleanup failed: sink hides.py, line ")
    assert warning.endswith("OSError: no luck")


SKIPS_HALF_A_FILE = """
import json
from pathlib import Path

GUARANTEE = "at-least-once"
SERVICES = ("directory",)


def write_batch(df, batch_id, target):
    file = Path(target.directory, f"{batch_id}.json")
    if file.exists():
        return
    rows = df.toJSON().collect()
    file.write_text("[")
    file.write_text(f"[{','.join(rows)}]")


def read(target):
    return [row for file in Path(target.directory).iterdir() for row in json.loads(file.read_text())]
"""


def test_a_target_that_a_crash_left_unreadable_fails_every_claim(trial: Run, tmp_path: Path) -> None:
    sink = tmp_path / "skips.py"
    sink.write_text(SKIPS_HALF_A_FILE)
    line = SKIPS_HALF_A_FILE.splitlines().index("""    file.write_text(f"[{','.join(rows)}]")""") + 1
    result = trial(sink, f"line[skips.py:{line}][batch=1] -> kill(driver)")
    assert (result.verdict.outcome, result.verdict.guarantee) == ("fail", "none"), described(result)
    assert [anomaly.kind for anomaly in result.verdict.anomalies] == ["unreadable"]
    assert "JSONDecodeError" in result.verdict.reason


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Where executors are processes of their own."""
    with Session(EnvironmentOptions(master="standalone", runs=tmp_path_factory.mktemp("runs"))) as session:
        yield session


@pytest.mark.long
def test_an_executor_that_dies_before_its_pre_commit_is_replaced_by_a_second_attempt(apart: Session) -> None:
    result = apart.trial(Request("kafka_transactional", "task.commit:before[batch=1] -> kill(executor)"))
    assert result.verdict.outcome == "pass", described(result)
    assert landed(result)
    attempts = [event for event in result.journal if event.get("phase") == "task.run" and event.get("attempt") == 1]
    assert attempts
    (settled,) = [event for event in result.journal if event["event"] == "settle"]
    assert settled["hanging"] == []


@pytest.mark.long
@pytest.mark.parametrize("action", ["kill(executor[1])", "stop(executor[0])"])
@pytest.mark.parametrize("point", ["sink.write:before[batch=1]", "task.run:before[batch=1]#2"])
def test_an_executor_is_ended_by_its_number_whichever_thread_is_parked(apart: Session, point: str, action: str) -> None:
    result = apart.trial(Request("kafka_transactional", f"{point} -> {action}", workload=SMALL))
    assert result.verdict.outcome == "pass", described(result)
    assert landed(result), described(result)
    (ended,) = [event for event in result.journal if event["event"] == "process.ended"]
    later = [event for event in result.journal if event["event"] == "point" and event["t"] > ended["t"]]
    assert ended["process"] not in {event.get("process") for event in later}


@pytest.mark.long
def test_changes_of_files_by_executors_and_their_python_workers_are_stopped(apart: Session) -> None:
    """A sync that fails fails the task: a second attempt writes another file, and nothing of the first one is read."""
    plan = 'file:before[op=sync, path="target/*", batch=1] -> fail(error=ENOSPC)'
    result = apart.trial(Request("file_rename", plan, workload=SMALL))
    assert result.verdict.outcome == "pass", described(result)
    assert landed(result), described(result)
    [raised] = [event for event in result.journal if event["event"] == "probe.raised"]
    assert raised["role"] == "worker"


@pytest.mark.long
@pytest.mark.parametrize(
    "plan",
    [
        "sink.commit:before[batch=1] -> pause(driver, longest=30s) until batch.commit:after[batch=1]",
        "request:before[service=kafka, kind=EndTxn, batch=1]#1 -> start(query)",
    ],
    ids=["a driver that comes back", "a second query"],
)
def test_two_drivers_have_executors_at_a_time(apart: Session, plan: str) -> None:
    result = apart.trial(Request("kafka_transactional", plan, workload=SMALL))
    assert result.verdict.outcome == "pass", described(result)
    assert landed(result), described(result)


@pytest.mark.long
def test_a_method_of_a_class_stops_the_task_that_calls_it_in_its_executor(apart: Session) -> None:
    commit = "jvm[org.postgresql.jdbc.PgConnection#commit]"
    plan = f"{commit}:before[batch=1, partition=1] -> kill(self); {commit}:before[batch=2, attempt=0] -> fail"
    result = apart.trial(Request("jdbc_append", plan, workload=SMALL))
    assert result.verdict.outcome == "pass", described(result)
    assert landed(result), described(result)
    stopped = [event for event in result.journal if event["event"] == "point" and event.get("phase") == "jvm"]
    assert {event["role"] for event in stopped} == {"executor"}
    (killed, _) = [event for event in result.journal if event["event"] == "fault.confirmed"]
    assert killed["detail"].startswith("killed java")
    started = [event["incarnation"] for event in result.journal if event["event"] == "driver.started"]
    assert started == [1], "the driver lives on"
