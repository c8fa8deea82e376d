"""Which Java is taken, and what Spark is started with. The runtimes are scripts that answer as Java does."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path

import pytest
from onceproof.harness.artifacts import Artifacts, archives
from onceproof.harness.artifacts.keys import archive_path, broker_key, spark_key
from onceproof.harness.environments.base import Unavailable
from onceproof.harness.environments.driver_start import parse_settings
from onceproof.harness.errors import UsageError
from onceproof.harness.java import Java, find_java, inspect, java_home_refused
from onceproof.harness.runtime import processes
from onceproof.harness.runtime.waiting import wait_for
from onceproof.harness.spark import SparkInstall, spark_of
from onceproof.harness.spark_conf import add_java_options, defaults_text, lean_properties, write_conf_dir

VECTOR = ("java.base", "jdk.incubator.vector")


def runtime(home: Path, release: str, modules: tuple[str, ...] = VECTOR) -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    settings = [
        f"    java.home = {home}",
        f"    java.specification.version = {release}",
        "    java.vm.vendor = Tests",
        f"    java.vm.version = {release}.0.1+7",
    ]
    listing = "\\n".join([*settings, *(f"{module}@{release}" for module in modules)])
    executable.write_text(f"#!/bin/sh\nprintf '{listing}\\n'\n")
    executable.chmod(0o755)
    return executable


def test_java_home_comes_before_path_and_path_before_the_system(tmp_path: Path) -> None:
    for place in ("home", "path", "system/one"):
        runtime(tmp_path / place, "17")
    environ = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path" / "bin")}
    roots = [tmp_path / "system"]
    assert find_java(environ, roots) == Java(tmp_path / "home", 17, "Tests", "17.0.1+7")
    del environ["JAVA_HOME"]
    assert find_java(environ, roots).home == tmp_path / "path"
    assert find_java({}, roots).home == tmp_path / "system" / "one"


def test_a_release_that_spark_supports_is_taken_before_a_newer_one(tmp_path: Path) -> None:
    runtime(tmp_path / "newer", "25")
    runtime(tmp_path / "system" / "jdk-21", "21")
    environ = {"JAVA_HOME": str(tmp_path / "newer")}
    assert find_java(environ, [tmp_path / "system"]).version == 21
    assert find_java(environ, []).version == 25


def test_what_does_not_fit_is_passed_over_and_named(tmp_path: Path) -> None:
    old = runtime(tmp_path / "old", "11")
    lean = runtime(tmp_path / "lean", "21", ("java.base",))
    broken = tmp_path / "broken" / "bin" / "java"
    broken.parent.mkdir(parents=True)
    broken.write_text("#!/nowhere\n")
    broken.chmod(0o755)
    environ = {"PATH": ":".join(str(each.parent) for each in (old, lean, broken))}
    with pytest.raises(Unavailable) as caught:
        find_java(environ, [])
    message = str(caught.value)
    assert "\n" not in message
    assert f"{old} is Java 11" in message
    assert f"{lean} is Java 21 without the module jdk.incubator.vector" in message
    assert f"{broken} does not run" in message
    assert "openjdk-17-jre-headless" in message
    runtime(tmp_path / "system" / "good", "17")
    assert find_java(environ, [tmp_path / "system"]).version == 17


def test_a_runtime_is_asked_without_the_variables_that_no_jvm_of_a_trial_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    java = find_java()
    for name in ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS"):
        monkeypatch.setenv(name, "-javaagent:/nowhere.jar")
    assert inspect(java.executable) == java


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("printf 'Unrecognized option: -X\\nError: Could not create the Java Virtual Machine.\\n' >&2; exit 1",
         "does not run: it failed with exit code 1 (Unrecognized option: -X)"),
        ("echo one; echo two; exit 3", "does not run: it failed with exit code 3 (two)"),
        ("exit 3", "does not run: it failed with exit code 3 (it printed nothing)"),
        ("echo hello", "tells no version of Java (hello)"),
    ],
)  # fmt: skip
def test_a_runtime_that_tells_no_version_is_quoted(tmp_path: Path, script: str, why: str) -> None:
    executable = runtime(tmp_path, "17")
    executable.write_text(f"#!/bin/sh\n{script}\n")
    with pytest.raises(Unavailable) as caught:
        inspect(executable)
    assert str(caught.value) == f"{executable} {why}"


def test_a_runtime_that_gives_no_answer_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onceproof.harness.java.ANSWER_SECONDS", 0.3)
    executable = runtime(tmp_path, "17")
    executable.write_text(f"#!/bin/sh\nsleep 30 &\necho $! > {tmp_path}/child\nwait\n")
    began = time.monotonic()
    with pytest.raises(Unavailable, match=r"does not run: it gave no answer within 0\.3 s$"):
        inspect(executable)
    assert time.monotonic() - began < 20
    child = int((tmp_path / "child").read_text())
    wait_for(lambda: (row := processes.look(child)) is None or not row.alive, 5, "the end of what was killed")


def test_why_the_java_of_java_home_is_not_taken_is_known(tmp_path: Path) -> None:
    runtime(tmp_path / "taken", "17")
    old, newer = runtime(tmp_path / "old", "11"), runtime(tmp_path / "newer", "25")
    taken = find_java({}, [tmp_path])
    assert taken.home == tmp_path / "taken"
    why = {
        home: java_home_refused(taken, {"JAVA_HOME": str(tmp_path / home)})
        for home in ("taken", "old", "newer", "none")
    }
    assert why == {
        "taken": "",
        "old": f"{old} is Java 11",
        "newer": f"{newer} is Java 25, newer than Spark supports",
        "none": f"{tmp_path}/none has no bin/java",
    }
    assert java_home_refused(taken, {}) == ""


def test_no_java_at_all_is_one_line_with_the_fix(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"no Java 17 or newer was found: install a Java 17 runtime .*JAVA_HOME"):
        find_java({"PATH": str(tmp_path), "JAVA_HOME": str(tmp_path)}, [tmp_path])


def test_the_java_of_this_machine_is_understood() -> None:
    java = find_java()
    assert inspect(java.executable) == java


def test_the_interpreters_pyspark_is_found_without_importing_it() -> None:
    spark = spark_of(sys.executable)
    assert (spark.home / "bin" / "spark-submit").exists()
    assert spark.version.count(".") == 2


@pytest.mark.parametrize("own", ["pyspark.py", "pyspark/__init__.py", "json.py"])
def test_no_file_of_the_current_directory_is_taken_for_pyspark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str
) -> None:
    (tmp_path / own).parent.mkdir(exist_ok=True)
    (tmp_path / own).write_text("raise RuntimeError('this is my own')")
    there = spark_of(sys.executable)
    monkeypatch.chdir(tmp_path)
    assert spark_of(sys.executable) == there


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (None, "does not run"),
        ("echo null", "has no pyspark"),
        ("echo boom >&2; exit 3", r"failed .*\(boom\)"),
        ("exit 0", "did not answer when asked for pyspark"),
        ("echo hello", "did not answer when asked for pyspark"),
    ],
)
def test_an_interpreter_without_pyspark_is_one_line_with_the_fix(
    tmp_path: Path, script: str | None, reason: str
) -> None:
    python = tmp_path / "python"
    if script:
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
    with pytest.raises(Unavailable, match=reason) as caught:
        spark_of(str(python))
    assert "\n" not in str(caught.value)
    assert str(python) in str(caught.value)
    assert "pip install 'pyspark==" in str(caught.value)


def test_the_configuration_directory_never_reaches_the_class_path(tmp_path: Path) -> None:
    java = Java(tmp_path / "jdk", 17, "Tests")
    variables = write_conf_dir(tmp_path / "trial", {"spark.a": "b c"}, "rootLogger.level = warn\n", java)
    directory = Path(variables["SPARK_CONF_DIR"])
    written = parse_settings((directory / "spark-defaults.conf").read_text(), "spark-defaults.conf")
    logging = f"-Dlog4j2.configurationFile=file://{tmp_path}/trial/log4j2.properties"
    options = {f"spark.{role}.extraJavaOptions": logging for role in ("driver", "executor")}
    assert written == {"spark.a": "b c"} | options
    assert variables["JAVA_HOME"] == str(java.home)
    entries = [entry for entry in variables["SPARK_CONF_DIR"].split(":") if entry]
    assert entries
    assert not any(Path(entry).exists() for entry in entries)


def test_defaults_are_escaped_as_java_properties() -> None:
    text = defaults_text({"spark.b": "x\\y\nz", "spark a": " lead"})
    assert text == "spark\\ a \\ lead\nspark.b x\\\\y\\nz\n"


AWKWARD = {
    "spark.a": "x\\y\nz",
    "spark b": "lead",
    "spark.c": "-Da=1 b:c #d !e",
    "spark.d": "Åsa \U0001f642",
    "spark.e": "",
}


def test_what_is_written_as_defaults_is_read_back() -> None:
    assert parse_settings(defaults_text(AWKWARD), "spark-defaults.conf") == AWKWARD


def test_defaults_are_read_as_java_util_properties() -> None:
    text = "# mine\n! too\n\nspark.a 1\nspark.b=2\nspark.c\\t x = y \nspark.d one, \\\n  two\n".replace("\\t", "\t")
    found = parse_settings(text, "spark-defaults.conf")
    assert found == {"spark.a": "1", "spark.b": "2", "spark.c": "x = y", "spark.d": "one, two"}


def test_an_escape_that_spark_could_not_read_is_one_clear_line() -> None:
    with pytest.raises(UsageError, match=r"^mine.conf: '\\\\u00zz' is not an escape of java.util.Properties"):
        parse_settings("spark.a \\u00zz\n", "mine.conf")


def test_java_options_are_appended_and_quoted() -> None:
    properties = add_java_options({"spark.driver.extraJavaOptions": "-Da=1"}, "driver", "-Dpath=/with blank/x", "-Db")
    assert properties == {"spark.driver.extraJavaOptions": '-Da=1 "-Dpath=/with blank/x" -Db'}
    assert shlex.split(properties["spark.driver.extraJavaOptions"]) == ["-Da=1", "-Dpath=/with blank/x", "-Db"]


def test_an_archive_is_used_only_for_the_java_and_the_jars_it_was_made_with(tmp_path: Path) -> None:
    jars = tmp_path / "spark" / "jars"
    jars.mkdir(parents=True)
    (jars / "a.jar").write_text("a")
    java, newer = Java(tmp_path, 17, "Tests", "17.0.1"), Java(tmp_path, 17, "Tests", "17.0.2")
    spark = SparkInstall(tmp_path / "spark", "4.2.0", "python")
    first = spark_key(java, spark, [])
    assert spark_key(java, spark, []) == first
    assert spark_key(newer, spark, []) != first
    assert spark_key(java, spark, [jars / "a.jar"]) != first
    (jars / "b.jar").write_text("b")
    assert spark_key(java, spark, []) != first


def test_lean_properties_name_the_archive_only_if_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connector, byteman = tmp_path / "connector.jar", tmp_path / "byteman.jar"
    for jar in (connector, byteman):
        jar.write_text("jar")
    monkeypatch.setattr(Artifacts, "connector_jars", lambda self, version: [connector])
    monkeypatch.setattr(Artifacts, "byteman", lambda self: byteman)
    artifacts = Artifacts.open(tmp_path / "cache")
    java, spark = Java(tmp_path, 17, "Tests", "17.0.1"), SparkInstall(tmp_path, "4.2.0", "python")
    bare = lean_properties(java, spark, artifacts)
    assert "SharedArchiveFile" not in bare["spark.driver.extraJavaOptions"]
    assert bare["spark.executor.extraClassPath"] == f"{connector}:{byteman}"
    assert bare["spark.sql.session.timeZone"] == "UTC"
    assert bare["spark.sql.adaptive.coalescePartitions.enabled"] == "false"
    archive = archive_path(artifacts.cache, "spark", spark_key(java, spark, [connector, byteman]))
    archive.parent.mkdir(parents=True)
    archive.touch()
    lean = lean_properties(java, spark, artifacts)
    assert f"-XX:SharedArchiveFile={archive}" in lean["spark.driver.extraJavaOptions"]
    assert "-XX:+UseSerialGC" in lean["spark.driver.extraJavaOptions"]


def test_of_many_archives_those_unused_for_longest_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Artifacts, "lean_jars", lambda self, version: [])
    artifacts = Artifacts.open(tmp_path / "cache")
    java, spark = Java(tmp_path, 17, "Tests", "17.0.1"), SparkInstall(tmp_path, "4.2.0", "python")
    used = archive_path(artifacts.cache, "spark", spark_key(java, spark, []))
    others = [archive_path(artifacts.cache, "spark", f"{number:016d}") for number in range(archives.KEPT)]
    used.parent.mkdir(parents=True)
    for age, path in enumerate([*reversed(others), used]):
        path.touch()
        os.utime(path, (1_000_000_000 - age, 1_000_000_000 - age))
    assert artifacts.spark_archive(java, spark) == used
    with archives._new(others[-1]) as dump:
        dump.touch()
    assert used.is_file()
    assert [path.is_file() for path in others] == [False, *[True] * (archives.KEPT - 1)]


def test_the_brokers_archive_has_a_key_of_its_own(tmp_path: Path) -> None:
    first, second = tmp_path / "first.jar", tmp_path / "second.jar"
    first.write_text("1")
    second.write_text("2")
    java = Java(tmp_path, 17, "Tests")
    assert broker_key(java, [first, second]) != broker_key(java, [second, first])
