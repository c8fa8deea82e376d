"""A driver in a container has ended when its container has, whatever else goes wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from docker.errors import NotFound
from onceproof.harness.environments.docker.driver import DockerDriver


class Container:
    """A container that has ended, on paper."""

    id = name = "driver-1"

    def __init__(self, code: int, *, oom: bool = False) -> None:
        self.code = code
        self.attrs = {
            "State": {"Running": False, "ExitCode": code, "OOMKilled": oom},
            "HostConfig": {"Memory": 1 << 30},
        }

    def wait(self, timeout: float) -> dict[str, int]:
        return {"StatusCode": self.code}

    def reload(self) -> None:
        pass

    def logs(self, **_: object) -> bytes:
        return b"the last line"


class Removed(Container):
    def wait(self, timeout: float) -> dict[str, int]:
        raise NotFound("no such container")

    def reload(self) -> None:
        raise NotFound("no such container")


def driver(container: Any, directory: Path, log: Path) -> DockerDriver:
    directory.mkdir()
    (directory / "driver.log").write_text("a line")
    return DockerDriver(container, "driver-1.1", "t1", directory, log)


def test_the_log_of_a_driver_that_has_ended_is_with_the_run(tmp_path: Path) -> None:
    ended = driver(Container(137), tmp_path / "own", tmp_path / "driver-1.log")
    assert ended.wait(10) == -9
    assert (tmp_path / "driver-1.log").read_text() == "a line"
    assert ended.failure() is None
    assert ended.discard()


def test_a_driver_whose_log_cannot_be_copied_has_ended_all_the_same_and_says_so_once(tmp_path: Path) -> None:
    ended = driver(Container(1), tmp_path / "own", log=tmp_path)
    assert ended.wait(10) == 1
    assert ended.alive() == []
    assert not ended.discard(), "its failure is not said yet"
    assert "its log was not copied" in str(ended.failure())
    assert ended.failure() is None
    assert ended.discard()


def test_a_driver_whose_container_was_removed_has_ended(tmp_path: Path) -> None:
    ended = driver(Removed(0), tmp_path / "own", tmp_path / "driver-1.log")
    assert ended.wait(10) == -9


@pytest.mark.parametrize("log", ["driver-1.log", "."])
def test_too_little_memory_is_said_before_a_log_that_was_not_copied(tmp_path: Path, log: str) -> None:
    ended = driver(Container(137, oom=True), tmp_path / "own", tmp_path / log)
    assert ended.wait(10) == -9
    assert "out of memory (its limit is 1024 MiB)" in str(ended.failure())
