"""What goes wrong with the environment itself ends in one line and exit code 4: it says nothing about the claim."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError, DockerException
from onceproof.harness import cli
from onceproof.harness.environments.base import EffectError
from onceproof.harness.environments.docker import containers
from onceproof.harness.environments.docker.engine import remove_dead_projects
from onceproof.harness.environments.docker.project import Project
from onceproof.harness.errors import UNAVAILABLE, Unavailable
from onceproof.harness.runtime import processes
from onceproof.harness.runtime.leftovers import remove_leftovers
from requests.exceptions import ConnectionError, ReadTimeout


def raises(error: Exception) -> Callable[..., Any]:
    def call(*_: object, **__: object) -> Any:
        raise error

    return call


def test_an_effect_that_the_environment_itself_needs_ends_a_command_with_exit_code_4(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "app", raises(EffectError("start of broker 1: no such container")))
    assert cli.execute(["demo"]) == UNAVAILABLE
    assert capsys.readouterr().err == "onceproof: start of broker 1: no such container\n"


def test_a_process_of_an_earlier_run_that_cannot_be_ended_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "end", raises(processes.Survivor("java 7 is not dead after 3 s")))
    with pytest.raises(Unavailable, match=r"an earlier run left .*: java 7 is not dead after 3 s: end that process"):
        remove_leftovers()


SILENT = [DockerException("no\nsocket"), ConnectionError("no socket"), ReadTimeout("no socket")]


@pytest.mark.parametrize("error", SILENT, ids=lambda error: type(error).__name__)
def test_an_engine_that_no_longer_answers_is_one_line(error: Exception) -> None:
    client: Any = SimpleNamespace(containers=SimpleNamespace(list=raises(error)))
    for ask, asked in (
        (Project(client, "onceproof-1", Path("compose.env")).containers, "list the containers of onceproof-1"),
        (lambda: remove_dead_projects(client), "list what has an owner"),
    ):
        with pytest.raises(Unavailable, match=rf"^the Docker engine did not {asked} \(no socket\): see .*docker info"):
            ask()


def test_the_processes_of_a_dead_container_are_none_and_those_of_a_silent_engine_are_not_known() -> None:
    container: Any = SimpleNamespace(name="driver-1", top=raises(APIError("container is not running")))
    assert containers.rows_of(container) == []
    container.top = raises(ReadTimeout("no answer"))
    with pytest.raises(EffectError, match="processes of driver-1: no answer"):
        containers.rows_of(container)
