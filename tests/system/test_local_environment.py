"""The local environment: real brokers, a real database, real drivers, and their deaths."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import redis
from onceproof.harness.environments.base import DriverSpec, EffectError, ProbePoint, ProcessSpec, Unavailable
from onceproof.harness.environments.broker_metadata import cluster_metadata
from onceproof.harness.environments.driver_start import joined, user_settings
from onceproof.harness.environments.local import LocalEnvironment, LocalOptions, open_local
from onceproof.harness.environments.local import postgres as local_postgres
from onceproof.harness.runtime import leftovers, processes
from onceproof.harness.runtime.guardian import MARK
from onceproof.harness.runtime.waiting import NotYet, wait_for

JOB = textwrap.dedent(
    """
    import atexit, os, sys, time
    from pyspark.sql import SparkSession
    out = sys.argv[1]
    atexit.register(lambda: open(out + "/atexit", "w").close())
    spark = SparkSession.builder.getOrCreate()
    def work(rows):
        open(out + "/worker-%d" % os.getpid(), "w").write(os.environ.get("ONCEPROOF_TOKEN", "no token"))
        while not os.path.exists(out + "/finish"):
            time.sleep(0.05)
        return rows
    print("counted", spark.sparkContext.parallelize(range(4), 2).mapPartitions(work).count())
    print("time zone", spark.conf.get("spark.sql.session.timeZone"), "mine", spark.conf.get("spark.mine"))
    spark.stop()
    """
)
RULE = textwrap.dedent(
    """
    RULE a task runs
    CLASS org.apache.spark.scheduler.ResultTask
    METHOD runTask
    AT ENTRY
    IF true
    DO traceln("rule fired in " + java.lang.ProcessHandle.current().pid())
    ENDRULE
    """
)
BROKER_RULE = textwrap.dedent(
    """
    RULE produce
    CLASS kafka.server.KafkaApis
    METHOD handleTopicMetadataRequest
    AT ENTRY
    BIND gate:java.io.File = new java.io.File("{gate}")
    IF gate.exists()
    DO traceln("broker rule fired")
    ENDRULE
    """
)
STARTING = textwrap.dedent(
    """
    import sys
    from onceproof.harness.environments.local import LocalOptions, open_local, postgres
    if "copied" in sys.argv:
        postgres.users = lambda: [postgres.NOBODY]
    environment = open_local(LocalOptions(master="standalone"))
    print(environment.services.guardian_identity(), environment.services.host.state, flush=True)
    try:
        environment.provide(["kafka", "postgres", "redis"])
    finally:
        environment.close()
    """
)
POINT = ProbePoint("127.0.0.1", 1, "a-token")


@pytest.fixture(scope="module")
def local() -> Iterator[LocalEnvironment]:
    environment = open_local(LocalOptions())
    yield environment
    environment.close()


@pytest.fixture(scope="module")
def standalone() -> Iterator[LocalEnvironment]:
    environment = open_local(LocalOptions(master="standalone"))
    environment.provide(())
    yield environment
    environment.close()


def spec(directory: Path, **more: object) -> DriverSpec:
    job = directory / "job.py"
    job.write_text(JOB)
    settings: dict[str, object] = {"driver_rules": "", "executor_rules": "", "conf": {"spark.mine": "a b"}} | more
    return DriverSpec(
        arguments=[str(job), str(directory)],
        log=directory / "driver.log",
        incarnation=1,
        injector=POINT,
        **settings,  # type: ignore[arg-type]
    )


def workers(directory: Path, count: int) -> list[int]:
    """The pids of the Python workers, once ``count`` of them run."""

    def seen() -> list[int] | NotYet:
        files = list(directory.glob("worker-*"))
        log = directory / "driver.log"
        return [int(file.name.partition("-")[2]) for file in files] if len(files) >= count else NotYet(log.read_text())

    return wait_for(seen, 60, f"{count} Python workers")


@pytest.mark.parametrize("master", ["local", "local[0]", "local[*]", "yarn", "", "local[2,]"])
def test_a_master_that_is_not_known_is_refused_in_one_line(master: str) -> None:
    with pytest.raises(ValueError, match=r"^master .* is unknown: use local\[n\].*standalone$"):
        LocalOptions(master=master)


@pytest.mark.parametrize("brokers", [0, 4])
def test_only_one_to_three_brokers_are_possible(brokers: int) -> None:
    with pytest.raises(ValueError, match="use 1 to 3"):
        LocalOptions(brokers=brokers)


def test_properties_that_hold_lists_are_joined_and_others_replaced() -> None:
    below = {"spark.jars": "a", "spark.x": "1", "spark.driver.extraJavaOptions": "-Da"}
    above = {"spark.jars": "b", "spark.x": "2", "spark.driver.extraJavaOptions": "-Db"}
    assert joined(below, above) == {
        "spark.jars": "a,b",
        "spark.x": "2",
        "spark.driver.extraJavaOptions": "-Da -Db",
    }


def test_the_users_own_spark_settings_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spark-defaults.conf").write_text("# mine\nspark.a 1\nspark.b=2\nspark.c\t x = y \n\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert user_settings(Path("/nowhere")) == {"spark.a": "1", "spark.b": "2", "spark.c": "x = y"}


def test_brokers_and_database_start_and_answer(local: LocalEnvironment) -> None:
    start = time.monotonic()
    local.provide(["kafka", "postgres"])
    addresses = local.addresses("harness")
    assert addresses.kafka is not None
    assert not isinstance(cluster_metadata(addresses.kafka), NotYet)
    assert addresses.postgres is not None
    with psycopg.connect(addresses.postgres) as connection:
        row = connection.execute(
            "select current_setting('TimeZone'), current_setting('max_prepared_transactions')::int"
        ).fetchone()
    assert row == ("UTC", 64)
    assert {"kafka", "spark", "java", "python", "postgres"} <= set(local.versions())
    assert local.failures(start) == []


def test_the_database_needs_its_password(local: LocalEnvironment) -> None:
    local.provide(["postgres"])
    address = re.sub(r"password=\S+", "password=wrong", str(local.addresses("harness").postgres))
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(address)


def test_redis_starts_and_answers_who_knows_its_password(local: LocalEnvironment) -> None:
    start = time.monotonic()
    local.provide(["redis"])
    address = str(local.addresses("harness").redis)
    assert address == local.addresses("job").redis
    with redis.Redis.from_url(address, decode_responses=True) as client:
        settings = client.config_get("databases", "save", "appendonly", "bind")
    assert settings == {"databases": "1024", "save": "", "appendonly": "yes", "bind": "127.0.0.1"}
    assert re.fullmatch(r"\d+\.\d+\.\d+", local.versions()["valkey"])
    for wrong in (re.sub(r":[^:@]+@", ":wrong@", address), re.sub(r":[^:@]+@", "", address)):
        with redis.Redis.from_url(wrong) as client, pytest.raises(redis.AuthenticationError):
            client.ping()
    assert local.failures(start) == []


def test_redis_is_asked_for_by_a_command_line_that_shows_no_password(local: LocalEnvironment) -> None:
    local.provide(["redis"])
    server = local.services.redis  # type: ignore[attr-defined]
    assert server.password not in processes.command(server.child.pid)
    assert (server.host.directory("valkey") / "valkey.conf").stat().st_mode & 0o077 == 0


def test_a_redis_that_ends_by_itself_is_a_failure_with_its_last_words() -> None:
    environment = open_local(LocalOptions())
    try:
        environment.provide(["redis"])
        start = time.monotonic()
        with redis.Redis.from_url(str(environment.addresses("harness").redis)) as client:
            client.shutdown(nosave=True)
        child = environment.services.redis.child  # type: ignore[attr-defined]
        assert child.wait(10) == 0
        (failure,) = environment.failures(start)
    finally:
        environment.close()
    assert failure.part == "valkey"
    assert failure.detail.startswith("ended by itself (exit code 0): ")
    assert "User requested shutdown" in failure.detail


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take another uid")
def test_the_database_runs_as_nobody_where_user_namespaces_are_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_postgres, "users", lambda: [local_postgres.NOBODY])
    environment = open_local(LocalOptions())
    try:
        environment.provide(["postgres"])
        with psycopg.connect(str(environment.addresses("harness").postgres)) as connection:
            assert connection.execute("select 1").fetchone() == (1,)
    finally:
        environment.close()


def test_an_unknown_service_is_unavailable(local: LocalEnvironment) -> None:
    with pytest.raises(Unavailable, match=r"no mongo: it has kafka, postgres, redis$"):
        local.provide(["mongo"])


def test_a_killed_broker_comes_back_with_a_new_epoch(local: LocalEnvironment) -> None:
    start = time.monotonic()
    local.provide(["kafka"])
    assert "killed broker 1" in local.kill_broker(1)
    with pytest.raises(EffectError, match="broker 1 does not run"):
        local.kill_broker(1)
    assert re.fullmatch(r"broker 1 registered with epoch \d+", local.start_broker(1))
    assert local.failures(start) == []


def test_a_broker_can_be_paused_and_goes_on(local: LocalEnvironment) -> None:
    start = time.monotonic()
    local.provide(["kafka"])
    child = local.services._brokers().brokers[1].child  # type: ignore[attr-defined]
    assert str(child.pid) in local.pause_process(f"local:{child.pid}")
    stopped = processes.look(child.pid)
    assert stopped is not None
    assert stopped.state in processes.STOPPED
    assert str(child.pid) in local.resume_process(f"local:{child.pid}")
    assert local.failures(start) == []


def test_a_broker_that_dies_by_itself_is_a_failure_for_every_trial_under_way(local: LocalEnvironment) -> None:
    local.provide(["kafka"])
    start = time.monotonic()
    broker = local.services.kafka.brokers[1]  # type: ignore[attr-defined]
    os.kill(broker.child.pid, signal.SIGKILL)
    broker.child.wait(5)
    (failure,) = local.failures(start)
    assert failure.part == "broker 1"
    assert "exit code -9" in failure.detail
    assert local.failures(start) == [failure], "a second trial under way learns of it too"
    assert local.failures(time.monotonic()) == [], "the next trial does not"
    local.start_broker(1)


def test_a_broker_whose_port_was_taken_is_unavailable_by_name(local: LocalEnvironment) -> None:
    local.provide(["kafka"])
    port = int(str(local.addresses("job").kafka).partition(":")[2])
    local.kill_broker(1)
    with socket.create_server(("127.0.0.1", port)), pytest.raises(Unavailable, match=f"broker 1 .*{port}"):
        local.start_broker(1)
    local.start_broker(1)


def test_broker_rules_act_only_while_the_brokers_are_armed(local: LocalEnvironment, tmp_path: Path) -> None:
    local.provide(["kafka"])
    rules = BROKER_RULE.format(gate=local.broker_gate())
    local.arm_brokers(rules, POINT)
    process = local.services.kafka.brokers[1].child.pid  # type: ignore[attr-defined]
    assert local.broker_of(f"local:{process}") == 1
    local.collect_logs(tmp_path / "0")
    cluster_metadata(str(local.addresses("job").kafka))
    local.collect_logs(tmp_path / "1")
    assert "broker rule fired" in (tmp_path / "1" / "broker-1.log").read_text()
    local.arm_brokers(None, None)
    assert not local.broker_gate().exists()
    cluster_metadata(str(local.addresses("job").kafka))
    local.collect_logs(tmp_path / "2")
    log = tmp_path / "2" / "broker-1.log"
    assert not log.exists() or "broker rule fired" not in log.read_text()


def test_a_state_directory_on_a_full_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "NEEDED", 1 << 60)
    with pytest.raises(Unavailable, match=r"onceproof-\S+ has \d+ MiB free, .* are needed: free some space"):
        open_local(LocalOptions())


@contextmanager
def starting(*options: str) -> Iterator[tuple[subprocess.Popen[str], str, Path]]:
    """A harness whose services start, its guardian's identity and its state directory; it has to end by itself."""
    with subprocess.Popen(
        [sys.executable, "-c", STARTING, *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as harness:
        assert harness.stdout is not None
        identity, state = harness.stdout.readline().split()
        yield harness, identity, Path(state)
        harness.wait(5)
    wait_for(lambda: not processes.lives(identity), 4, "the end of the guardian")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_harness_that_ends_while_its_services_start_leaves_nothing(number: signal.Signals) -> None:
    with starting() as (harness, identity, state):
        wait_for(lambda: processes.marked(MARK, identity, processes.table()), 10, "a service to start")
        harness.send_signal(number)
    assert processes.marked(MARK, identity, processes.table()) == []
    assert not state.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root copies the database's files, for another uid")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_harness_that_ends_while_the_databases_files_are_copied_leaves_nothing(number: signal.Signals) -> None:
    with starting("copied") as (harness, identity, state):
        copies = f"postgres/{local_postgres.WHEEL}/*/*"
        wait_for(lambda: list(state.glob(copies)), 30, "the first copies", poll=0.001)
        harness.send_signal(number)
    assert processes.marked(MARK, identity, processes.table()) == []
    assert list(state.parent.glob(f"{state.name}*")) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root copies the database's files, for another uid")
def test_a_disk_that_the_databases_files_do_not_fit_on_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(tmp_path)], capture_output=True
    ).returncode:
        pytest.skip("a file system can be mounted with more rights only")
    try:
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setattr(tempfile, "tempdir", None)
        monkeypatch.setattr(leftovers, "NEEDED", 0)
        monkeypatch.setattr(local_postgres, "users", lambda: [local_postgres.NOBODY])
        environment = open_local(LocalOptions())
        try:
            with pytest.raises(Unavailable, match=r"the disk is full \(\S+/postgres\): .*set TMPDIR"):
                environment.provide(["postgres"])
        finally:
            environment.close()
        assert list(tmp_path.iterdir()) == []
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.long
def test_a_driver_runs_a_plain_script_to_its_end(local: LocalEnvironment, tmp_path: Path) -> None:
    (tmp_path / "finish").touch()
    driver = local.start_driver(spec(tmp_path, executor_rules=RULE))
    assert driver.wait(300) == 0
    log = (tmp_path / "driver.log").read_text()
    assert "counted 4" in log
    assert "time zone UTC mine a b" in log
    assert "rule fired" in log
    wait_for(lambda: not driver.alive(), 10, "the end of the driver's JVM")
    assert local.job_processes() == []


@pytest.mark.long
def test_without_lean_start_up_a_driver_has_the_users_own_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.mine from the user\nspark.driver.extraJavaOptions -Duser.x=1\n"
    )
    (tmp_path / "finish").touch()
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    environment = open_local(LocalOptions(master="local[2,3]", lean=False))
    try:
        driver = environment.start_driver(spec(tmp_path, conf={}))
        assert driver.wait(300) == 0
    finally:
        environment.close()
    assert "time zone UTC mine from the user" in (tmp_path / "driver.log").read_text()


def test_kill_of_a_driver_ends_jvm_and_workers_without_running_its_atexit(
    local: LocalEnvironment, tmp_path: Path
) -> None:
    driver = local.start_driver(spec(tmp_path))
    pids = workers(tmp_path, 2)
    assert os.getpgid(pids[0]) != os.getpgid(int(driver.process.partition(":")[2]))
    assert {f"local:{pid}" for pid in pids} <= set(driver.alive()) == set(local.job_processes())
    detail = driver.kill()
    assert "java" in detail
    assert not any(processes.look(pid) and processes.look(pid).alive for pid in pids)  # type: ignore[union-attr]
    assert driver.alive() == local.job_processes() == []
    assert driver.wait(0) == -signal.SIGKILL
    assert not (tmp_path / "atexit").exists()
    assert (tmp_path / f"worker-{pids[0]}").read_text() == "a-token"


def test_a_paused_driver_goes_on_when_it_is_resumed(local: LocalEnvironment, tmp_path: Path) -> None:
    driver = local.start_driver(spec(tmp_path))
    workers(tmp_path, 2)
    driver.pause()
    (tmp_path / "finish").touch()
    assert driver.wait(1) is None
    states = {processes.look(int(process.partition(":")[2])).state for process in driver.alive()}  # type: ignore[union-attr]
    assert states <= processes.STOPPED
    driver.resume()
    assert driver.wait(30) == 0


def test_a_drivers_processor_time_is_that_of_its_jvm_too(local: LocalEnvironment, tmp_path: Path) -> None:
    driver = local.start_driver(spec(tmp_path))
    workers(tmp_path, 2)
    python = processes.look(int(driver.process.partition(":")[2]))
    assert python is not None
    assert driver.processor_seconds() > python.used + 1
    driver.kill()
    assert driver.processor_seconds() == 0


def test_a_process_that_is_not_of_a_job_is_left_alone(local: LocalEnvironment) -> None:
    for process in (f"local:{os.getpid()}", "local:1"):
        with pytest.raises(EffectError, match="left alone"):
            local.kill_process(process)
    with pytest.raises(EffectError, match="is not a process here"):
        local.kill_process("elsewhere:12")


def test_a_python_worker_can_be_killed_alone(local: LocalEnvironment, tmp_path: Path) -> None:
    driver = local.start_driver(spec(tmp_path, conf={"spark.master": "local[2]"}))
    victim = workers(tmp_path, 2)[0]
    assert str(victim) in local.kill_process(f"local:{victim}")
    assert driver.wait(30) == 1, "a task of local[n] is not tried again"


def test_an_auxiliary_process_is_ended_with_what_it_started(local: LocalEnvironment, tmp_path: Path) -> None:
    script = "import subprocess; subprocess.Popen(['sleep', '60'], start_new_session=True).wait()"
    running = local.start_process(ProcessSpec(arguments=["-c", script], log=tmp_path / "log"))
    assert running.wait(0.5) is None
    assert "sleep" in running.kill()
    assert running.wait(5) == -signal.SIGKILL


@pytest.mark.long
def test_on_a_standalone_cluster_the_executors_outlive_the_drivers_machine_by_themselves(
    standalone: LocalEnvironment, tmp_path: Path
) -> None:
    driver = standalone.start_driver(spec(tmp_path, executor_rules=RULE))
    pids = workers(tmp_path, 2)
    parents = {processes.look(pid).parent for pid in pids}  # type: ignore[union-attr]
    executors = set(standalone.job_processes()) - set(driver.alive())
    assert {f"local:{pid}" for pid in pids} <= executors
    assert len(parents) == 2, "two executors with a daemon each"
    for daemon in parents:
        jvm = Path("/proc", str(processes.look(daemon).parent))  # type: ignore[union-attr]
        assert "-Djava.io.tmpdir=." in (jvm / "cmdline").read_text().split("\0")
        place = (jvm / "cwd").readlink()
        assert place.parts[-3] == "work", "what it unpacks goes with the environment, however it ends"
    assert (tmp_path / f"worker-{pids[0]}").read_text() == "a-token"
    driver.kill()
    wait_for(lambda: not standalone.job_processes(), 20, "the executors to give up")
    standalone.collect_logs(tmp_path / "logs")
    logs = [path.read_text() for path in (tmp_path / "logs").glob("executor-*stdout*")]
    assert any("rule fired" in log for log in logs)


def test_a_killed_executor_is_replaced_and_its_tasks_run_again(standalone: LocalEnvironment, tmp_path: Path) -> None:
    driver = standalone.start_driver(spec(tmp_path))
    pid = workers(tmp_path, 2)[0]
    daemon = processes.look(pid)
    assert daemon is not None
    executor = processes.look(daemon.parent)
    assert executor is not None
    standalone.kill_process(f"local:{executor.parent}")
    assert processes.look(pid) is None or not processes.look(pid).alive  # type: ignore[union-attr]
    workers(tmp_path, 3)
    (tmp_path / "finish").touch()
    assert driver.wait(300) == 0
    assert "counted 4" in (tmp_path / "driver.log").read_text()


@pytest.mark.long
@pytest.mark.parametrize("part", ["executor", "worker"])
def test_a_paused_executor_or_worker_stands_still_with_all_below_it_until_it_is_resumed(
    standalone: LocalEnvironment, tmp_path: Path, part: str
) -> None:
    def row(pid: int) -> processes.Process:
        found = processes.look(pid)
        assert found is not None
        return found

    driver = standalone.start_driver(spec(tmp_path))
    worker = workers(tmp_path, 2)[0]
    executor = row(row(row(worker).parent).parent).pid
    standalone.pause_process(f"local:{executor if part == 'executor' else worker}")
    assert row(worker).state in processes.STOPPED
    assert (row(executor).state in processes.STOPPED) == (part == "executor")
    (tmp_path / "finish").touch()
    assert driver.wait(1) is None, "its task is not done"
    standalone.resume_process(f"local:{executor if part == 'executor' else worker}")
    assert driver.wait(60) == 0
    assert "counted 4" in (tmp_path / "driver.log").read_text()


@pytest.mark.long
def test_an_executor_that_is_told_to_end_does_so_and_is_replaced(standalone: LocalEnvironment, tmp_path: Path) -> None:
    driver = standalone.start_driver(spec(tmp_path))
    workers(tmp_path, 2)
    first, other = standalone.executors()
    standalone.terminate_process(first)
    wait_for(lambda: first not in standalone.executors(), 30, "its end")
    assert other in standalone.executors()
    workers(tmp_path, 3)
    (tmp_path / "finish").touch()
    assert driver.wait(300) == 0


@pytest.mark.long
def test_three_brokers_survive_the_death_of_the_controller() -> None:
    environment = open_local(LocalOptions(brokers=3))
    try:
        environment.provide(["kafka"])
        environment.kill_broker(1)
        others = str(environment.addresses("job").kafka).partition(",")[2]
        wait_for(lambda: _brokers(others) == {2, 3}, 20, "the others to go on")
        environment.start_broker(1)
        wait_for(lambda: _brokers(others) == {1, 2, 3}, 20, "all to be there")
    finally:
        environment.close()


def test_the_interpreter_of_the_job_is_the_one_asked_for() -> None:
    with pytest.raises(Unavailable, match="no-such-python"):
        open_local(LocalOptions(python="/no-such-python"))
    assert LocalOptions().python == sys.executable


def _brokers(bootstrap: str) -> set[int]:
    metadata = cluster_metadata(bootstrap)
    return set() if isinstance(metadata, NotYet) else set(metadata.brokers)
