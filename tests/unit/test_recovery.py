"""What the last user of a named environment left stopped, dead or cut off is put in order for the next one."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis
from onceproof.harness.environments import valkey_server
from onceproof.harness.environments.base import Unavailable
from onceproof.harness.environments.docker import containers
from onceproof.harness.environments.docker import services as docker_services
from onceproof.harness.environments.docker.options import DockerOptions
from onceproof.harness.environments.docker.services import WORKERS, AttachInfo, DockerServices
from onceproof.harness.environments.host import Host
from onceproof.harness.environments.local import kafka
from onceproof.harness.environments.local.kafka import KafkaCluster
from onceproof.harness.runtime import connections, processes


def row(pid: int, state: str = "S", name: str = "java", parent: int = 1) -> processes.Process:
    return processes.Process(pid, parent, state, started=1, name=name)


@dataclass
class Machine:
    """A process table on paper, with the children that a guardian started. ``done`` tells what was done, in order."""

    rows: dict[int, processes.Process] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    identity: str = "1:1"

    def spawn(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, log: Path, user: Any) -> Any:
        pid = 100 + len(self.rows)
        self.rows[pid] = row(pid)
        self.done.append(f"start of {log.stem}")
        return SimpleNamespace(pid=pid, ended=False, log=log)

    def remove_on_close(self, path: Path, kind: str) -> None:
        pass

    def send(self, process: processes.Process, number: int) -> None:
        self.rows[process.pid] = replace(self.rows[process.pid], state="S")
        self.done.append(f"signal {int(number)} to {process.pid}")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr(processes, "look", lambda pid: machine.rows.get(pid))
    monkeypatch.setattr(processes, "send", machine.send)
    return machine


@pytest.fixture
def brokers(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KafkaCluster:
    """Three brokers that run."""

    def registered(number: int, address: str, log: bytes) -> str:
        machine.done.append(f"broker {number} awaited")
        return "registered"

    monkeypatch.setattr(kafka, "registered", registered)
    monkeypatch.setattr(kafka, "all_serve", lambda *_: True)
    guardian: Any = machine
    java: Any = SimpleNamespace(executable="java")
    artifacts: Any = SimpleNamespace(broker_archive=lambda java: None, broker_classpath=list)
    cluster = KafkaCluster(Host(guardian, tmp_path), java, artifacts, 3)
    for broker in cluster.brokers.values():
        broker.launch(None, {})
    machine.done.clear()
    return cluster


def test_brokers_that_run_are_left_as_they_are(brokers: KafkaCluster, machine: Machine) -> None:
    brokers.recover()
    assert machine.done == []


def test_a_stopped_broker_goes_on_and_serves_before_the_next_user_comes(
    brokers: KafkaCluster, machine: Machine
) -> None:
    machine.rows[101] = row(101, state="T")
    assert [broker.stopped for broker in brokers.brokers.values()] == [False, True, False]
    brokers.recover()
    assert machine.done == ["signal 18 to 101", *(f"broker {number} awaited" for number in (1, 2, 3))]
    assert not brokers.brokers[2].stopped


def test_dead_brokers_are_all_started_before_one_is_waited_for(brokers: KafkaCluster, machine: Machine) -> None:
    machine.rows[100] = row(100, state="T")
    for number in (2, 3):
        child: Any = brokers.brokers[number].child
        child.ended = True
    brokers.recover()
    assert machine.done[:4] == ["signal 18 to 100", "start of broker-2", "start of broker-3", "broker 1 awaited"]
    assert all(broker.running for broker in brokers.brokers.values())


class Container:
    """A container of a service, on paper."""

    def __init__(self, service: str, done: list[str]) -> None:
        self.id = self.name = service
        self.labels = {"com.docker.compose.service": service}
        self.status = "running"
        self.starts = 1
        self._done = done

    @property
    def attrs(self) -> Any:
        running = self.status in ("running", "paused")
        state = {"Status": self.status, "Running": running, "ExitCode": 137, "StartedAt": "2026-01-01T00:00:00Z"}
        return {"State": state}

    def reload(self) -> None:
        pass

    def start(self) -> None:
        self.status, self.starts = "running", self.starts + 1
        self._done.append(f"start of {self.name}")

    def unpause(self) -> None:
        self.status = "running"

    def logs(self, **_: object) -> bytes:
        return b""

    def exec_run(self, command: list[str], **_: object) -> tuple[int, tuple[bytes, bytes]]:
        assert self.status == "running"
        self._done.append(f"{command[-1]} in {self.name}")
        return 0, (b'{"found": []}', b"")


@dataclass
class Project:
    """A compose project on paper."""

    done: list[str] = field(default_factory=list)
    services: Collection[str] = ("kafka1", "kafka2", "kafka3", "spark-master", *WORKERS)

    def __post_init__(self) -> None:
        self.found = {service: Container(service, self.done) for service in self.services}

    def list(self, filters: Mapping[str, list[str]], **_: object) -> list[Container]:
        wanted = [label.partition("=")[2] for label in filters["label"]][1:]
        return [one for one in self.found.values() if not wanted or one.name in wanted]

    def alive_workers(self, port: int) -> dict[str, str]:
        """Each start has a name of its own."""
        running = [one for one in self.found.values() if one.name in WORKERS and one.status == "running"]
        return {f"{one.name}-{one.starts}": one.name for one in running}


@pytest.fixture
def project() -> Project:
    return Project()


@pytest.fixture
def held(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DockerServices:
    """Services of a standalone cluster in containers."""

    def registered(number: int, address: str, log: bytes) -> str:
        project.done.append(f"kafka{number} awaited")
        return "registered"

    client = SimpleNamespace(containers=project, version=lambda: {"Version": "27"})
    fakes = {
        "connect": lambda: client,
        "require_compose": lambda: "2",
        "bridge_address": lambda client: "172.17.0.1",
        "registered": registered,
        "all_serve": lambda *_: True,
        "alive_workers": project.alive_workers,
        "clear": lambda url: project.done.append(f"{url} emptied"),
        "version": lambda url: "9.1.2",
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(docker_services, name, fake)
    names = ("KAFKA1_PORT", "KAFKA2_PORT", "KAFKA3_PORT", "SPARK_UI_PORT", "POSTGRES_PORT", "VALKEY_PORT")
    ports = dict.fromkeys(names, 1) | {"VALKEY_PORT": 6380}
    guardian: Any = SimpleNamespace(identity="1:1")
    info = AttachInfo(tmp_path, "onceproof-1", "secret", ports, tuple(project.services))
    return DockerServices(DockerOptions(), Host(guardian, tmp_path), info)


def test_containers_that_run_are_not_started_again(held: DockerServices, project: Project) -> None:
    held.recover()
    assert not any(done.startswith("start") for done in project.done)
    assert project.done[-2:] == [f"end-jobs in {worker}" for worker in WORKERS]


def test_a_worker_that_was_left_dead_is_started_and_registered_again(held: DockerServices, project: Project) -> None:
    project.found["spark-worker2"].status = "exited"
    held.recover()
    assert project.done[-3:] == ["end-jobs in spark-worker1", "start of spark-worker2", "end-jobs in spark-worker2"]
    assert all(containers.running(one) for one in held.project.containers())
    assert held.failures() == []


def test_brokers_that_were_all_left_dead_are_started_before_one_is_waited_for(
    held: DockerServices, project: Project
) -> None:
    dead = ["kafka1", "kafka2", "kafka3"]
    for service in (*dead, "spark-worker1"):
        project.found[service].status = "exited"
    held.recover()
    begun = project.done.index("start of kafka1")
    assert project.done[begun : begun + 6] == [f"start of {one}" for one in dead] + [f"{one} awaited" for one in dead]
    assert "start of spark-worker1" in project.done[begun:]


def test_the_network_is_healed_before_a_broker_is_waited_for(held: DockerServices, project: Project) -> None:
    project.found["kafka1"].status, project.found["kafka2"].status = "exited", "paused"
    held.recover()
    assert project.done.index("blackhole in kafka2") < project.done.index("kafka1 awaited")


def test_a_redis_that_a_user_has_started_is_emptied_for_the_next_one_and_started_if_it_is_dead(
    held: DockerServices, project: Project
) -> None:
    held.recover()
    assert not any(done.endswith("emptied") for done in project.done)
    project.found["valkey"] = Container("valkey", project.done)
    held.recover()
    assert project.done[-1] == "redis://127.0.0.1:6380/0 emptied"
    project.found["valkey"].status = "exited"
    project.done.clear()
    held.recover()
    assert project.done[-1] == "redis://127.0.0.1:6380/0 emptied"
    assert "start of valkey" in project.done


def test_a_redis_that_does_not_answer_is_not_given_to_the_next_user(
    held: DockerServices, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(url: str) -> None:
        raise redis.ConnectionError("no answer")

    monkeypatch.setattr(valkey_server, "connect", silent)
    monkeypatch.setattr(docker_services, "clear", valkey_server.clear)
    project.found["valkey"] = Container("valkey", project.done)
    with pytest.raises(Unavailable, match=r"^valkey does not answer: no answer$"):
        held.recover()


def test_redis_is_found_by_the_containers_name_inside_and_by_its_published_port_outside(
    held: DockerServices, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def up(services: Sequence[str]) -> None:
        assert services == ["valkey"]
        project.found["valkey"] = Container("valkey", project.done)

    monkeypatch.setattr(held.project, "up", up)
    monkeypatch.setattr(held, "image", lambda: None)
    monkeypatch.setattr(held, "_options", DockerOptions(master="local[2]"))
    assert held.addresses(inside=True).redis is None
    held.provide(["redis"])
    assert held.addresses(inside=True).redis == "redis://valkey:6379/0"
    assert held.addresses(inside=False).redis == "redis://127.0.0.1:6380/0"


def test_on_a_worker_everything_of_a_job_is_ended_and_the_worker_is_not(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "processes", processes)
    monkeypatch.setitem(sys.modules, "connections", connections)
    inside = importlib.import_module("onceproof.harness.environments.docker.inside")
    daemon = ["python3", "-m", "pyspark.daemon", "pyspark.worker"]
    commands = {
        1: ["/sbin/docker-init", "--", "role.py"],
        2: ["java", "org.apache.spark.deploy.worker.Worker"],
        3: ["java", inside.EXECUTOR],
        4: daemon,
        5: daemon,
        6: ["python3", "inside.py", "end-jobs"],
        7: ["sleep", "60"],
    }
    parents = {1: 0, 2: 1, 3: 2, 4: 1, 5: 4, 6: 0, 7: 3}
    machine.rows |= {pid: row(pid, "T" if pid == 5 else "S", commands[pid][0], parents[pid]) for pid in commands}
    monkeypatch.setattr(processes, "table", lambda: machine.rows)
    monkeypatch.setattr(processes, "command", commands.__getitem__)
    monkeypatch.setattr(processes, "end", lambda select: select(processes.table()))
    ended = inside.end_jobs()
    assert set(ended) == {"java 3", "python3 4", "python3 5", "sleep 7"}
