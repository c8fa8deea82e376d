"""The trials of the local environment, unchanged, on containers: the same verdicts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import docker
import pytest
from http_store import HTTP_SINK, Store
from onceproof.assertions import Workload
from onceproof.harness.environments.docker import containers
from onceproof.harness.environments.docker.environment import DockerEnvironment
from onceproof.harness.runtime.waiting import wait_for
from onceproof.harness.trial.spec import TrialResult
from trials import EVERY_SINK, TWO_PHASE, Run, described, landed, line_of, long, raises_on_replay

SIDE_BY_SIDE = 3


def machine(process: object) -> str:
    """``worker1`` of ``worker1.2:57``, an executor at the second start of that machine."""
    return str(process).partition(":")[0].partition(".")[0]


def events(result: TrialResult, name: str) -> list[Any]:
    return [event for event in result.journal if event["event"] == name]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("sink", "steps"),
    [
        long("postgres_upsert", EVERY_SINK),
        long("postgres_ledger", EVERY_SINK),
        long("kafka_transactional", EVERY_SINK + TWO_PHASE),
        ("kafka_transactional", ("sink.write:after", "task.commit:after", "sink.commit:after")),
    ],
)
def test_a_correct_sink_is_exactly_once_at_each_step_at_which_the_driver_dies(
    trial: Run, sink: str, steps: Sequence[str]
) -> None:
    def killed_at(step: str) -> TrialResult:
        return trial(sink, f"{step}[batch=1] -> kill(driver)", workload=Workload(batches=3))

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        results = list(pool.map(killed_at, steps))
    for result in results:
        assert (result.verdict.outcome, result.verdict.guarantee) == ("pass", "exactly-once"), described(result)
        assert landed(result)


def test_the_kafka_sink_duplicates_the_rows_of_a_replayed_batch(trial: Run) -> None:
    result = trial("kafka_append", "sink.commit:after[batch=1] -> kill(driver)", claim="exactly-once")
    assert (result.verdict.outcome, result.verdict.guarantee) == ("fail", "at-least-once")
    (duplicated,) = result.verdict.anomalies
    assert (duplicated.kind, list(duplicated.batches)) == ("duplicated", [1])
    assert duplicated.count == result.verdict.records["batch_sizes"][1]
    assert any("replay by the restarted driver" in cause for cause in duplicated.causes)


def test_a_job_with_state_and_a_sink_in_redis_survive_a_crash_after_the_states_commit(trial: Run) -> None:
    result = trial("redis_ledger", "state.commit:after[batch=1] -> kill(driver)", job="running_sum")
    assert result.verdict.outcome == "pass", described(result)
    assert landed(result)


def test_a_fault_that_is_never_reached_is_inconclusive(trial: Run) -> None:
    result = trial("postgres_upsert", "sink.write:after[batch=999] -> kill(driver)")
    assert (result.verdict.outcome, result.verdict.guarantee) == ("inconclusive", None)
    assert "sink.write:after[batch=999]" in result.verdict.reason


@pytest.mark.long
def test_a_sink_that_raises_on_every_replay_is_stuck(trial: Run, tmp_path: Path) -> None:
    sink = tmp_path / "raises_on_replay.py"
    sink.write_text(raises_on_replay())
    result = trial(sink, "sink.write:after[batch=1] -> kill(driver)")
    assert result.verdict.outcome == "fail"
    assert "stuck" in {anomaly.kind for anomaly in result.verdict.anomalies}
    assert "batch 1 was seen before" in str(result.verdict)


@pytest.mark.long
def test_a_driver_that_dies_with_one_transaction_committed_and_one_open_commits_the_other(trial: Run) -> None:
    line = line_of("kafka_transactional", "coordinators.commit(transaction)")
    result = trial("kafka_transactional", f"line[kafka_transactional.py:{line}][batch=1]#2 -> kill(driver)")
    assert result.verdict.outcome == "pass", described(result)
    assert landed(result)


def test_the_tasks_of_a_dead_executor_are_retried_on_the_other_worker(trial: Run) -> None:
    result = trial("kafka_transactional", "task.commit:before[batch=1] -> kill(executor)")
    assert result.verdict.outcome == "pass", described(result)
    (fired,) = events(result, "fault.fired")
    attempts = [
        point
        for point in events(result, "point")
        if (point["phase"], point.get("edge"), point.get("batch")) == ("task.run", "before", 1)
        and point.get("attempt", 0) > 0
    ]
    assert attempts
    worker = machine(result.verdict.faults[0].process)
    assert {machine(point["process"]) for point in attempts} == {"worker1", "worker2"} - {worker}, fired


def test_the_tasks_of_a_dead_machine_are_retried_on_the_other_one(trial: Run) -> None:
    result = trial("kafka_transactional", "task.commit:before[batch=1] -> kill(node)")
    assert result.verdict.outcome == "pass", described(result)
    assert landed(result)
    (back,) = events(result, "node.registered")
    assert str(result.verdict.faults[0].process).startswith(f"{back['node']}:")


def test_a_dead_python_worker_is_replaced(trial: Run) -> None:
    result = trial("kafka_transactional", "task.row:before[batch=1, row=5] -> kill(worker)")
    assert result.verdict.outcome == "pass", described(result)
    assert landed(result)


def test_the_transaction_of_a_dead_coordinator_is_completed_by_another_broker(trial: Run) -> None:
    result = trial("kafka_transactional", "txn.prepare:after -> kill(broker)")
    assert result.verdict.outcome == "pass", described(result)
    (moved,) = events(result, "txn.coordinator")
    assert moved["broker"] != moved["before"]
    assert f"coordinator now: broker {moved['broker']}" in str(result.verdict.faults[0].replay["seen"])


@pytest.mark.parametrize(("sink", "server"), [("postgres_ledger", "postgres"), long("redis_ledger", "redis")])
def test_a_killed_server_of_a_target_recovers_what_it_has_acknowledged(trial: Run, sink: str, server: str) -> None:
    result = trial(sink, f"sink.write:after[batch=1] -> kill({server}) then restart({server}, after=1s)")
    assert (result.verdict.outcome, result.verdict.guarantee) == ("pass", "exactly-once"), described(result)
    assert landed(result)
    (back,) = events(result, "server.back")
    assert back["server"] == server


def test_a_broker_is_found_by_what_it_is_and_killed_where_no_broker_is_parked(trial: Run) -> None:
    result = trial("kafka_transactional", "task.commit:before[batch=1] -> kill(broker, which=coordinator)")
    assert result.verdict.outcome == "pass", described(result)
    assert landed(result)


def test_a_driver_that_was_cut_off_from_a_broker_goes_on_when_it_is_healed(trial: Run) -> None:
    plan = "sink.commit:after[batch=1] -> partition(driver, peer=broker2, for=15s)"
    result = trial("kafka_transactional", plan)
    assert result.verdict.outcome == "pass", described(result)
    (cut,), (healed,) = events(result, "network.cut"), events(result, "network.healed")
    assert 15 <= healed["t"] - cut["t"] < 25
    assert "kafka2" in cut["detail"]


@pytest.mark.parametrize(("sink", "server"), [("postgres_ledger", "postgres"), long("redis_ledger", "valkey")])
def test_an_executor_that_was_cut_off_has_no_way_to_the_targets_server_either(
    trial: Run, sink: str, server: str
) -> None:
    result = trial(sink, "task.run:before[batch=1]#1 -> partition(executor, for=10s)")
    assert result.verdict.outcome == "pass", described(result)
    assert landed(result), described(result)
    (cut,) = events(result, "network.cut")
    assert f"-{server}-" in cut["detail"]


def test_a_paused_driver_that_was_replaced_is_a_zombie_and_a_fenced_sink_survives_it(
    trial: Run, environment: DockerEnvironment
) -> None:
    plan = "sink.write:before[batch=1] -> pause(driver) until batch.commit:after[batch=1]"
    result = trial("postgres_upsert", plan)
    assert result.verdict.outcome == "pass", described(result)
    drivers = {event["process"].partition(":")[0] for event in events(result, "driver.started")}
    assert len(drivers) == 2, "the new driver has a container of its own"


def test_tasks_may_run_in_the_drivers_own_container(tmp_path: Path, onceproof: Callable[..., Any]) -> None:
    fault = "task.run:after[batch=1] -> kill(driver)"
    ended = onceproof(
        *("run", "--env", "docker", "--master", "local[2]", "--sink", "postgres_upsert", "--fault", fault, "--json"),
    )
    assert (ended.code, ended.json["verdict"]) == (0, "pass"), ended
    assert ended.json["environment"]["docker"]


def test_a_container_that_dies_by_itself_is_named_and_not_taken_for_a_fault(
    trial: Run, environment: DockerEnvironment, engine: docker.DockerClient
) -> None:
    killer = threading.Thread(target=_kill_when_a_driver_runs, args=(environment,))
    killer.start()
    try:
        result = trial("postgres_upsert")
    finally:
        killer.join()
        environment.start_broker(3)
    assert result.verdict.outcome == "inconclusive", described(result)
    assert "kafka3 ended by itself" in str(result.verdict)
    assert (result.directory / "logs" / "kafka3.log").stat().st_size > 0


def _kill_when_a_driver_runs(environment: DockerEnvironment) -> None:
    def driver_runs() -> bool:
        return any(containers.running(driver) for driver in environment.services.project.containers("driver"))

    wait_for(driver_runs, 60, "a driver")
    environment.services.container("kafka3").kill()


@pytest.mark.parametrize(
    ("kind", "action", "place"),
    [("EndTxn", "drop", "driver-1"), ("Produce", "drop", "worker"), long("EndTxn", "kill(driver)", "driver-1")],
)
def test_a_request_is_stopped_whose_client_is_in_a_container(trial: Run, kind: str, action: str, place: str) -> None:
    result = trial("kafka_transactional", f"request:after[kind={kind}, batch=1] -> {action}")
    assert (result.verdict.outcome, result.verdict.guarantee) == ("pass", "exactly-once"), described(result)
    assert landed(result), described(result)
    asked = [event["process"] for event in events(result, "point") if event.get("kind") == kind]
    assert all(machine(process).startswith(place) for process in asked), asked


@pytest.mark.parametrize(
    ("sink", "point", "role"),
    [
        ("file_rename", 'file:before[op=rename, path="target/pending/*", batch=1]', "worker"),
        long("file_manifest", 'file:after[op=create, path="target/events/part-*", batch=1]', "executor"),
        long("file_rename", 'file:after[op=rename, path="target/final/*", batch=1]', "python"),
    ],
)
def test_a_change_of_a_file_is_stopped_in_the_container_of_who_makes_it(
    trial: Run, sink: str, point: str, role: str
) -> None:
    result = trial(sink, f"{point} -> kill(driver)")
    assert (result.verdict.outcome, result.verdict.guarantee) == ("pass", "exactly-once"), described(result)
    assert landed(result), described(result)
    assert role in {event["role"] for event in events(result, "point") if event.get("phase") == "file"}


def test_a_sink_that_does_not_sync_loses_a_batch_with_the_power_of_the_drivers_machine(trial: Run) -> None:
    result = trial("renamed_unsynced", "batch.commit:after[batch=1] -> kill(driver, unsynced=lost)")
    assert "lost" in [one.kind for one in result.verdict.anomalies], described(result)
    assert landed(result), described(result)


@pytest.mark.parametrize(("method", "found"), [("POST", ["duplicated"]), long("PUT", [])])
def test_a_service_on_this_machine_is_reached_by_a_proxy_and_its_answer_lost(
    trial: Run, tmp_path: Path, method: str, found: list[str]
) -> None:
    sink = tmp_path / "api.py"
    sink.write_text(HTTP_SINK.replace("METHOD", f'"{method}"'))
    with Store() as store:
        threading.Thread(target=store.serve_forever, daemon=True).start()
        own = {"api": f"127.0.0.1:{store.server_address[1]}"}
        lost = trial(str(sink), f"request:after[service=api, kind={method}, batch=1] -> drop", own_services=own)
        other = trial(str(sink), own_services=own)
        store.shutdown()
    assert [one.kind for one in lost.verdict.anomalies] == found, described(lost)
    assert landed(lost), described(lost)
    assert other.verdict.outcome == "pass", described(other)


SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.0",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "100ms",
}
"""A second attempt of a task starts on another machine as soon as half of the stage's tasks are done before it."""


@pytest.mark.long
def test_speculation_doubles_the_rows_of_a_task_that_is_only_slow(trial: Run) -> None:
    plan = (
        "task.commit:before[batch=1, partition=0, attempt=0] -> delay(6s); "
        "sink.write:before[batch=2] -> delay(10s)"  # it is not over before the first one is
    )
    result = trial("kafka_append", plan, conf=SPECULATION)
    assert result.verdict.outcome == "pass", described(result)
    assert landed(result)
    [anomaly] = result.verdict.anomalies
    assert anomaly.kind == "duplicated", described(result)
    assert 1 in anomaly.batches
    assert not events(result, "driver.exited")[:-1], "nothing has died"
