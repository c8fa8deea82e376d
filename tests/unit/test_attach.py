"""An environment that is up has settled what it was started with; which ones are up is made up here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from onceproof.harness import environment_options, pytest_plugin
from onceproof.harness.certification.inputs import inputs_of
from onceproof.harness.cli import execute, run, sessions
from onceproof.harness.environment_options import EnvironmentOptions, attached
from onceproof.harness.environments import holder
from onceproof.harness.environments.holder import NamedEnvironment
from onceproof.harness.errors import UNAVAILABLE, USAGE
from onceproof.harness.request import Request
from onceproof.harness.session import Session

LOCAL = NamedEnvironment("dev", "local", "1:1", "standalone", 2, False, "2026-01-01T00:00", python="/usr/bin/python3")
DOCKER = NamedEnvironment("box", "docker", "1:1", "standalone", 3, True, "2026-01-01T00:00", image="my-spark:4.1")


@pytest.fixture(autouse=True)
def _up(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (environment_options, holder):
        monkeypatch.setattr(module, "environments", lambda: [LOCAL, DOCKER])


DIFFERENT = [
    ("dev", ("--env", "docker"), "--env docker", "with --env local"),
    ("box", ("--env", "local"), "--env local", "with --env docker"),
    ("dev", ("--master", "local[2]"), "--master local[2]", "with --master standalone"),
    ("dev", ("--brokers", "1"), "--brokers 1", "with --brokers 2"),
    ("dev", ("--python", "/opt/python3"), "--python /opt/python3", "with --python /usr/bin/python3"),
    ("box", ("--python", "/usr/bin/python3"), "--python /usr/bin/python3", "without it"),
    ("box", ("--own-settings",), "--own-settings", "without it"),
    ("box", ("--image", "other"), "--image other", "with --image my-spark:4.1"),
    ("dev", ("--image", "other"), "--image other", "without it"),
    ("box", ("--compose-file", "/limits.yml"), "--compose-file /limits.yml", "without it"),
]


@pytest.mark.parametrize("command", [("run", "--sink"), ("certify",)])
@pytest.mark.parametrize(("name", "options", "asked", "has"), DIFFERENT, ids=[" ".join(each[1]) for each in DIFFERENT])
def test_what_an_environment_has_otherwise_is_refused_by_name(
    name: str, options: Sequence[str], asked: str, has: str, command: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute([*command, "kafka_append", "--attach", name, *options]) == USAGE
    assert capsys.readouterr().err == (
        f"onceproof: {asked} does not fit --attach {name}, which was started {has}: leave it out, or start another "
        "environment with 'onceproof up'\n"
    )


SAME = [
    ("dev", ()),
    ("dev", ("--env", "local", "--master", "standalone", "--brokers", "2", "--own-settings")),
    ("dev", ("--python", "/usr/bin/python3")),
    ("box", ("--env", "docker", "--brokers", "3", "--image", "my-spark:4.1")),
]


@pytest.mark.parametrize(("name", "options"), SAME, ids=[" ".join([name, *options]) for name, options in SAME])
def test_what_an_environment_has_may_be_said_again(
    name: str, options: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[EnvironmentOptions] = []

    def trial(request: Request) -> SimpleNamespace:
        return SimpleNamespace(verdict=SimpleNamespace(outcome=next(iter(run.EXIT))))

    def made(options: EnvironmentOptions, at_once: int | None) -> SimpleNamespace:
        opened.append(options)
        return SimpleNamespace(trial=trial, close=lambda: None)

    monkeypatch.setattr(sessions, "Session", made)
    monkeypatch.setattr(run, "print_trial", lambda result: None)
    assert execute(["run", "--sink", "kafka_append", "--attach", name, *options]) == 0
    up = {"dev": LOCAL, "box": DOCKER}[name]
    (used,) = opened
    assert (used.env, used.master, used.brokers, used.lean, used.image) == (
        up.env,
        up.master,
        up.brokers,
        up.lean,
        up.image,
    )


def test_a_certificates_inputs_are_what_the_environment_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def spark_of(python: str) -> SimpleNamespace:
        asked.append(python)
        return SimpleNamespace(version="4.2.0", home=tmp_path)

    monkeypatch.setattr("onceproof.harness.certification.inputs.spark_of", spark_of)
    request = Request("kafka_append")
    local = inputs_of(Session(EnvironmentOptions(attach="dev")).options, request)
    docker = inputs_of(Session(EnvironmentOptions(attach="box")).options, request)
    named = ("environment", "master", "brokers", "settings of Spark")
    assert [local[name] for name in named] == ["local", "standalone", "2", "its own"]
    assert [docker[name] for name in named] == ["docker", "standalone", "3", "lean"]
    assert docker["image"] == "my-spark:4.1"
    assert asked == ["/usr/bin/python3"]


def test_an_override_file_is_the_same_by_any_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "limits.yml"
    monkeypatch.setattr(environment_options, "environments", lambda: [replace(DOCKER, compose_files=[str(file)])])
    monkeypatch.chdir(tmp_path)
    options = EnvironmentOptions(attach="box", compose_files=("limits.yml",))
    assert attached(options, {"compose_files"}).compose_files == (str(file),)


def test_one_that_is_not_up_is_named_with_those_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["down", "--name", "nope"]) == UNAVAILABLE
    assert execute(["run", "kafka_append", "--attach", "nope"]) == UNAVAILABLE
    absent = "onceproof: no environment called nope is up (up: dev, box)"
    assert capsys.readouterr().err == f"{absent}\n{absent}: 'onceproof up --name nope' starts one\n"


def test_without_an_environment_of_that_name_the_options_stay_as_they_are() -> None:
    for options in (EnvironmentOptions(brokers=3), EnvironmentOptions(attach="nobody", brokers=3)):
        assert attached(options, {"brokers"}) == options


@pytest.fixture
def config(tmp_path: Path) -> Callable[..., Any]:
    """pytest's own, with these options of the plugin."""

    def made(**options: str) -> SimpleNamespace:
        named = {f"--onceproof-{name}": value for name, value in options.items()}
        return SimpleNamespace(getoption=named.get, rootpath=tmp_path)

    return made


def test_the_pytest_plugin_takes_an_environment_as_it_is(config: Callable[..., Any]) -> None:
    assert pytest_plugin._environment(config(attach="box")).env == "docker"
    assert pytest_plugin._environment(config()).env == "local"
    with pytest.raises(
        pytest.fail.Exception, match=r"^onceproof: --onceproof-env local does not fit --onceproof-attach box"
    ):
        pytest_plugin._environment(config(attach="box", env="local"))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("env", "k8s", "--onceproof-env 'k8s' is unknown: it is one of local, docker"),
        ("master", "yarn", "--onceproof-master 'yarn' is unknown: use local[n]"),
        ("attach", "nope", "no environment called nope is up (up: dev, box)"),
    ],
)
def test_the_pytest_plugin_names_its_own_options(config: Callable[..., Any], name: str, value: str, said: str) -> None:
    with pytest.raises(pytest.fail.Exception) as caught:
        pytest_plugin._environment(config(**{name: value}))
    assert str(caught.value).startswith(f"onceproof: {said}")
    assert caught.value.__context__ is None, "pytest would show it, too"
