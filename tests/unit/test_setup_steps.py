"""What is made before many trials are run, where it is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from onceproof.harness import environment_options, setup_steps
from onceproof.harness.artifacts import Artifacts
from onceproof.harness.artifacts.errors import ArtifactError
from onceproof.harness.environment_options import EnvironmentOptions, make_ready
from onceproof.harness.java import Java
from onceproof.harness.setup_steps import make_quick
from onceproof.harness.spark import SparkInstall


@pytest.mark.parametrize(
    ("options", "made"),
    [
        (EnvironmentOptions(python="python"), ["python"]),
        (EnvironmentOptions(python="python", lean=False), []),
        (EnvironmentOptions(env="docker"), []),
        (EnvironmentOptions(attach="shared"), []),
    ],
)
def test_it_is_made_for_lean_jvms_of_ones_own_on_this_machine(
    options: EnvironmentOptions, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []
    monkeypatch.setattr(environment_options, "make_quick", lambda python, report: found.append(python))
    make_ready(options)
    assert found == made


def test_what_cannot_be_made_is_told_and_trials_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> Path:
        raise ArtifactError("the disk is full")

    java, spark = Java(tmp_path, 17, "Tests", "17.0.1"), SparkInstall(tmp_path, "4.2.0", "python")
    monkeypatch.setattr(setup_steps, "find_java", lambda: java)
    monkeypatch.setattr(setup_steps, "spark_of", lambda python: spark)
    monkeypatch.setattr(setup_steps, "make_spark_archive", full)
    for present in ("launcher_archive", "broker_archive", "named_classes"):
        monkeypatch.setattr(Artifacts, present, lambda *_: tmp_path)
    monkeypatch.setattr(Artifacts, "spark_archive", lambda *_: None)
    monkeypatch.setattr(Artifacts, "byteman", lambda _: tmp_path)
    told: list[str] = []
    make_quick("python", told.append)
    assert told == ["making the class-data archive of Spark (40 s)", "warning: the disk is full"]
