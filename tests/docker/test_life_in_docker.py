"""What is started in Docker is removed, however the harness ends; what cannot be had is said in one line."""

from __future__ import annotations

import io
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import docker
import pytest
from command import Command, Ended
from onceproof.harness.environments import holder
from onceproof.harness.environments.docker.engine import OWNER
from onceproof.harness.environments.docker.environment import DockerEnvironment
from onceproof.harness.runtime.waiting import NotYet, wait_for

TRIAL = ("run", "--env", "docker", "--sink", "postgres_upsert", "--batches", "3")
FAULT = ("--fault", "sink.write:after[batch=1] -> kill(driver)")
UNAVAILABLE = 4
KILLS_A_NODE = """
import sys
from onceproof.harness.environments import holder
environment = holder.attach(sys.argv[1])
print(environment.kill_node("worker2:1"), flush=True)
sys.stdin.read()
"""


def ours(engine: docker.DockerClient) -> set[str]:
    """Names of containers, networks and volumes that a harness made."""
    filters = {"label": OWNER}
    found = [
        *engine.containers.list(all=True, filters=filters, ignore_removed=True),
        *engine.networks.list(filters=filters),
        *engine.volumes.list(filters=filters),
    ]
    return {str(one.name) for one in found}


@pytest.fixture
def others(engine: docker.DockerClient) -> set[str]:
    """What other tests have up."""
    return ours(engine)


def none_left(engine: docker.DockerClient, others: set[str]) -> bool | NotYet:
    left = ours(engine) - others
    return NotYet(", ".join(sorted(left))) if left else True


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_harness_that_ends_in_mid_trial_leaves_nothing(
    onceproof: Command, tmp_path: Path, engine: docker.DockerClient, others: set[str], number: signal.Signals
) -> None:
    command = onceproof.start(*TRIAL, *FAULT, "--run-directory", "killed")
    journal = tmp_path / "killed" / "journal.jsonl"
    wait_for(lambda: journal.exists() and "driver.started" in journal.read_text(), 200, "a driver", poll=0.5)
    assert any("driver" in name for name in ours(engine) - others)
    command.send_signal(number)
    command.communicate(timeout=60)
    wait_for(lambda: none_left(engine, others), 20, "the end of all containers")


def test_an_environment_that_is_up_serves_several_commands_and_goes_down(
    onceproof: Command, engine: docker.DockerClient, others: set[str]
) -> None:
    name = f"test-{os.getpid()}"
    up = onceproof("up", "--env", "docker", "--name", name)
    assert up.code == 0, up
    try:
        ended = onceproof("run", "--attach", name, *TRIAL[3:], *FAULT, "--json")
        assert (ended.code, ended.json["verdict"]) == (0, "pass"), ended
        assert _running_drivers(engine, others) == []
        with subprocess.Popen(
            [sys.executable, "-c", KILLS_A_NODE, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as user:
            assert user.stdout is not None
            assert "killed spark-worker2" in user.stdout.readline()
            user.kill()
        with closing(holder.attach(name)) as environment:
            assert isinstance(environment, DockerEnvironment)
            assert environment.services.container("spark-worker2").status == "running", "it was put in order"
    finally:
        down = onceproof("down", "--name", name)
    assert down.code == 0, down
    assert none_left(engine, others)


def _running_drivers(engine: docker.DockerClient, others: set[str]) -> list[str]:
    found = engine.containers.list(filters={"label": "com.docker.compose.service=driver"})
    return [str(one.name) for one in found if one.name not in others]


def refused(ended: Ended, *words: str) -> bool:
    """One line, exit code 4, which names these."""
    lines = ended.err.strip().splitlines()
    return ended.code == UNAVAILABLE and len(lines) == 1 and all(word in lines[0] for word in words)


def test_an_engine_that_does_not_run_is_one_clear_error(onceproof: Command) -> None:
    ended = onceproof(*TRIAL, env={"DOCKER_HOST": "unix:///nonexistent/docker.sock"})
    assert refused(ended, "unix:///nonexistent/docker.sock", "does not answer", "systemctl start docker"), ended


def test_doctor_says_what_docker_lacks(onceproof: Command) -> None:
    here = onceproof("doctor", "--env", "docker", "--json")
    assert here.code == 0, here
    assert {check["name"] for check in here.json} >= {"engine", "compose", "bridge", "image"}
    lacking = onceproof("doctor", "--env", "docker", "--json", env={"DOCKER_HOST": "unix:///nonexistent/docker.sock"})
    (engine,) = [check for check in lacking.json if check["name"] == "engine"]
    assert (lacking.code, engine["ok"]) == (UNAVAILABLE, False)
    assert "systemctl start docker" in engine["fix"]


def test_a_missing_compose_is_one_clear_error(onceproof: Command, tmp_path: Path) -> None:
    plain = tmp_path / "bin" / "docker"
    plain.parent.mkdir()
    plain.write_text("#!/bin/sh\necho \"docker: 'compose' is not a docker command.\" >&2\nexit 1\n")
    plain.chmod(plain.stat().st_mode | stat.S_IXUSR)
    ended = onceproof(*TRIAL, env={"PATH": f"{plain.parent}:{os.environ['PATH']}"})
    assert refused(ended, "'docker compose' is missing", "docker-compose-plugin"), ended


def test_an_image_that_is_absent_is_one_clear_error(onceproof: Command) -> None:
    ended = onceproof(*TRIAL, env={"ONCEPROOF_IMAGE": "onceproof-absent:latest"})
    assert refused(ended, "onceproof-absent:latest is absent", "docker compose build"), ended


def test_a_spark_image_that_lacks_something_is_one_clear_error(onceproof: Command) -> None:
    ended = onceproof(*TRIAL, "--image", "debian:bookworm-slim")
    assert refused(ended, "debian:bookworm-slim will not do", "python3"), ended


@pytest.fixture
def taken_port() -> Iterator[int]:
    with closing(socket.socket()) as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def test_a_port_that_is_taken_is_one_clear_error_and_nothing_is_left(
    onceproof: Command, taken_port: int, engine: docker.DockerClient, others: set[str]
) -> None:
    ended = onceproof(*TRIAL, env={"KAFKA2_PORT": str(taken_port)})
    assert refused(ended, str(taken_port), "docker-compose.yml"), ended
    assert none_left(engine, others)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small file system")
def test_a_full_disk_is_one_clear_error(onceproof: Command, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], check=True)
    try:
        ended = onceproof(*TRIAL, env={"TMPDIR": str(small)})
    finally:
        subprocess.run(["umount", small], check=True)
    assert refused(ended, str(small), "TMPDIR"), ended


FOREIGN = """
FROM onceproof:latest
RUN mv /opt/onceproof/venv /opt/spark-python && rm -r /opt/onceproof
ENV PATH=/opt/spark-python/bin:$PATH
USER nobody
ENTRYPOINT ["/bin/false"]
"""
"""An image with Spark, Java and what the sink imports, and nothing of ours."""


@pytest.fixture
def foreign_image(engine: docker.DockerClient) -> Iterator[str]:
    name = f"onceproof-test-foreign:{os.getpid()}"
    engine.images.build(fileobj=io.BytesIO(FOREIGN.encode()), tag=name, rm=True, forcerm=True)
    yield name
    engine.images.remove(name, force=True)


@pytest.mark.parametrize("settings", [(), pytest.param(("--own-settings",), marks=pytest.mark.long)])
def test_a_users_own_spark_image_is_certified_as_it_is(
    onceproof: Command, foreign_image: str, settings: tuple[str, ...]
) -> None:
    ended = onceproof(*TRIAL, *FAULT, "--image", foreign_image, *settings, "--json")
    assert (ended.code, ended.json["verdict"]) == (0, "pass"), ended
    assert ended.json["environment"]["image"] == foreign_image


def test_an_executor_out_of_memory_is_named(onceproof: Command, tmp_path: Path) -> None:
    (tmp_path / "small.yml").write_text("services:\n  driver:\n    mem_limit: 200m\n    memswap_limit: 200m\n")
    ended = onceproof(*TRIAL, "--compose-file", "small.yml", "--json")
    assert ended.code in (3, UNAVAILABLE), ended
    assert "out of memory (its limit is 200 MiB)" in ended.out + ended.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--env", "podman"), ('"podman" for --env', '"local", "docker"')),
        (("--image", "my-spark"), ("--env docker",)),
        (("--env", "docker", "--compose-file", "none.yml"), ("--compose-file none.yml does not exist",)),
        (("--env", "docker", "--brokers", "2"), ("has 3",)),
        (("--fault", "sink.write:after[batch=1] -> partition(driver, for=5s)"), ("needs --env docker",)),
    ],
)
def test_bad_input_is_one_line_before_anything_starts(
    onceproof: Command, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    ended = onceproof("run", "--sink", "postgres_upsert", *arguments)
    assert ended.code == 2, ended
    assert all(word in ended.err for word in words), ended
