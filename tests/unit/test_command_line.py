"""What the command line refuses before anything starts, in one line with exit code 2, and its other exit codes."""

from __future__ import annotations

import errno
import io
import json as json_module
from pathlib import Path

import pytest
from onceproof.harness import request
from onceproof.harness.cli import bench, certify, environment, execute, lists, main, run, sessions
from onceproof.harness.console.printing import say
from onceproof.harness.errors import HELD, INTERNAL, INTERRUPTED, UNAVAILABLE, USAGE, UsageError
from onceproof.harness.run_directories import new_run_directory

LONG = "x" * 300
"""Longer than a file's name can be."""

TEXT = "caf\u00e9 \u2192 \U0001f600"

COMMANDS = ("setup", "doctor", "up", "down", "phases", "jobs", "sinks", "plan", "run", "certify", "check", "demo")

WRONG = [
    (("run", "--sink", "kafka_append", "--claim", "twice"), '"twice" for --claim. Choose from: "exactly-once", "at-le'),
    (("run", "no_such", "--claim", "none"), '"none" for --claim. Choose from: "exactly-once", "at-least-once", "at-m'),
    (("certify", "no_such", "--claim", "null"), '"null" for --claim. Choose from: "exactly-once", "at-least-once"'),
    (("check", "no_such", "--claim", "None"), '"None" for --claim. Choose from: "exactly-once", "at-least-once"'),
    (("run", "no_such", "--env", "none"), '"none" for --env. Choose from: "local", "docker"'),
    (("run", "no_such", "--brokers", "none"), '--brokers: unable to convert "none" into int'),
    (("run", "no_such", "--state-store", "none"), '"none" for --state-store. Choose from: "hdfs", "rocksdb", "rocks'),
    (("certify", "no_such", "--batch", "none"), '--batch: unable to convert "none" into int'),
    (("certify", "no_such", "--parallel", "none"), '--parallel: unable to convert "none" into int'),
    (("bench", "recovery", "--state-store", "none", "--repeat", "0"), '"none" for --state-store. Choose from: "hdfs"'),
    (("bench", "recovery", "--keys", "none", "--repeat", "0"), '--keys: unable to convert "none" into int'),
    (("bench", "checkpoint", "--interval", "none", "--rate", "0"), '--interval: unable to convert "none" into float'),
    (("run", "no_such", "--jars", ""), "--jars is empty: leave it out, or give a value"),
    (("run", "no_such", "--jars", ","), "--jars ',' names no jar: leave it out, or give the path of a jar file"),
    (("run", "no_such", "--jars", __file__), "test_command_line.py is no jar, which is a zip file: give the path"),
    (("run", "no_such", "--jars", "/tmp"), "--jars /tmp is a directory: give the path of a jar file"),
    (("run", "no_such", "--jars", "a.b:c:1.0"), "a jar file, or name these coordinates among the sink's JARS"),
    (
        ("certify", "--jars", "mine.jar", "kafka_append"),
        "there is no sink, for --jars takes all words behind it (mine.jar, kafka_append): write the sink first",
    ),
    (("run", "--jars", "mine.jar", "kafka_append"), "behind it (mine.jar, kafka_append): write the sink first"),
    (("run", "no_such", "--brokers", "3.4"), "--brokers 3.4 is no whole number: give one, without a point"),
    (("run", "no_such", "--rows", "1.5"), "--rows 1.5 is no whole number"),
    (("certify", "no_such", "--batch", "4.6"), "--batch 4.6 is no whole number"),
    (("certify", "no_such", "--pack", "1.4"), "--pack 1.4 is no whole number"),
    (("bench", "recovery", "--keys", "1", "2.5"), "--keys 2.5 is no whole number"),
    (("run", "no_such", "--deadline", "inf"), '"inf" for --deadline. Must be <= 86400'),
    (("run", "no_such", "--deadline", "1e300"), '"1e+300" for --deadline. Must be <= 86400'),
    (("run", "no_such", "--deadline", "nan"), '"nan" for --deadline. Must be <= 86400'),
    (("run", "no_such", "--sink-deadline", "inf"), '"inf" for --sink-deadline. Must be <= 86400'),
    (("run", "no_such", "--settle-deadline", "inf"), '"inf" for --settle-deadline. Must be <= 86400'),
    (("up", "--ttl", "inf"), '"inf" for --ttl. Must be <= 43200'),
    (("demo", "--env", "podman"), '"podman" for --env. Choose from: "local", "docker"'),
    (("setup", "--env", "podman"), '"podman" for --env'),
    (("doctor", "--env", "podman"), '"podman" for --env'),
    (("plan", "check", "at(3s) -> kill(driver)", "--env", "podman"), '"podman" for --env'),
    (("certify", "kafka_append", "--profile", "deep"), '"deep" for --profile. Choose from: "demo", "quick"'),
    (
        ("certify", "kafka_append", "--profile", "quick", "--points", "lines"),
        "--points 'lines' with --profile quick has no point, since that sweeps steps of the commit protocol only: take "
        "--profile standard, or leave it out of --points",
    ),
    (("certify", "kafka_append", "--profile", "demo", "--points", "phases,effects"), "'effects' with --profile demo"),
    (("certify", "kafka_append", "--pack", "0"), '"0" for --pack. Must be >= 1'),
    (("certify", "kafka_append", "--parallel", "0"), '"0" for --parallel. Must be >= 1'),
    (("certify", "kafka_append", "--resume", "."), "certify takes either a sink or --resume DIRECTORY"),
    (("certify",), "certify takes either a sink or --resume DIRECTORY"),
    (("up", "--ttl", "0"), '"0.0" for --ttl. Must be > 0'),
    (("run", "--sink", "kafka_append", "--batches", "1001"), '"1001" for --batches. Must be <= 1000'),
    (("run", "--sink", "kafka_append", "--partitions", "101"), '"101" for --partitions. Must be <= 100'),
    (("certify", "kafka_append", "--rows", "100001"), '"100001" for --rows. Must be <= 100000'),
    (("certify", "kafka_append", "--rows", "0"), '"0" for --rows. Must be >= 1'),
    (("run", "--sink", "kafka_append", "--fault", ""), "--fault is empty: leave it out, or give a value"),
    (("run", "--sink", "kafka_append", "--fault", ";"), "--fault is empty: leave it out for a trial without faults"),
    (("run", "--sink", "kafka_append", "--plan", "zombie_driver", "--fault", " ;"), "--fault is empty: leave it out"),
    (("run", "--sink", "kafka_append", "--plan", "/dev/null"), "plan file /dev/null is empty: write a fault into it"),
    (
        ("run", "kafka_append", "--plan", "sink.write:after[batch=1] -> kill(driver)"),
        "--plan 'sink.write:after[batch=1] -> kill(driver)' is a plan's text, and --plan takes a file or a known "
        "failure's name: give the plan's text with --fault",
    ),
    (("run", "kafka_append", "--plan", "no.plan"), "plan file no.plan does not exist: give the path of a plan file"),
    (("plan", "check", "--file", "nope"), "plan file nope does not exist: give the path of a plan file"),
    (("run", "--sink", "kafka_append", "--plan", ""), "--plan is empty: leave it out, or give a value"),
    (("plan", "check", "# hi"), "the plan is empty: write a fault, such as 'sink.write:after[batch=1] -> kill(dri"),
    (("plan", "check", "--file", "/dev/null"), "plan file /dev/null is empty: write a fault into it"),
    (("plan", "check", "at(1s) -> kill(driver)", "--master", "yarn"), "--master 'yarn' is unknown: use local[n]"),
    (("plan", "check", "at(1s) -> kill(driver)", "--job", "nope"), "--job nope does not exist: give the path of a"),
    (("plan", "check", "at(1s) -> kill(driver)", "--brokers", "9"), "--brokers 9 is not possible: use 1 to 3"),
    (("plan", "check", "at(1s) -> kill(driver)", "--trigger", "hourly"), "--trigger 'hourly' is not a trigger"),
    (("plan", "check", "at(1s) -> kill(driver)", "--batches", "0"), '"0" for --batches. Must be >= 1'),
    (("plan", "check", "at(1s) -> kill(driver)", "--proxy", "api"), "--proxy 'api' names no service"),
    (("plan", "check", "sink.write:after[batch=99] -> kill(driver)"), "batch 99 is beyond the input"),
    (("plan", "check", "sink.write:after[batch=9] -> fail", "--batches", "8"), "it has batches 0 to 7 (--batches)"),
    (
        ("plan", "check", "set batches = 2; sink.write:after[batch=3] -> fail", "--sink", "kafka_append"),
        "batch 3 is beyond the input: it has batches 0 to 1 (--batches)",
    ),
    (("plan", "check", "sink.write:after -> restart(driver)"), "needs a kill(driver) before it in its fault"),
    (("plan", "check", "sink.write:after -> remove(commits)"), "put kill(driver) behind it in its fault"),
    (("plan", "check", "sink.write:after -> kill(driver, which=all)"), "which of kill is for broker only"),
    (("plan", "check", "at(3s) -> kill(self)"), "kill(self) needs a point"),
    (("plan", "check", "sink.write:after -> drop"), "sink.write stops the driver JVM, where drop cannot act"),
    (("plan", "check", "sink.write:after -> fail", "--trigger", "continuous=1 second"), "has no sink.write"),
    (
        ("plan", "check", "set batches = 1000; set rows = 1000"),
        "9612000 records: give fewer, for at most 1000000",
    ),
    (
        ("run", "--sink", "kafka_append", "--fault", "set rows = 100000; at(1s) -> kill(driver)", "--batches", "9"),
        "records: give fewer, for at most 1000000",
    ),
    (
        ("run", "kafka_append", "--fault", "sink.write:after[batch=5] -> kill(driver)"),
        "batch 5 is beyond the input: it has batches 0 to 4 (--batches)",
    ),
    (
        ("run", "kafka_append", "--fault", "set batches = 12; sink.write:after[batch=12] -> fail"),
        "batch 12 is beyond the input: it has batches 0 to 11 (--batches)",
    ),
    (("run", "kafka_apend"), "no sink is called 'kafka_apend': did you mean kafka_append, "),
    (("run", "no_such"), "no sink is called 'no_such': give the path of a sink file (my_sink.py); 'onceproof sinks' "),
    (("foo",), "See onceproof --help"),
    (("jobs", "x"), "'x' is one argument too many: leave it out. See onceproof jobs --help"),
    (("run", "a", "b", "c d"), "'b' and 'c d' are too many: leave them out. See onceproof run --help"),
    (("bench", "recovery", "--keys", "x"), "See onceproof bench recovery --help"),
    (("plan", "chek"), "See onceproof plan --help"),
    (("certify", "kafka_append", "--run-directory", __file__), "test_command_line.py is a file: name a new one with"),
    (("certify", "kafka_append", "--conf", "spark.master=local[8]"), "--conf spark.master is --master's: choose the"),
    (("run", "kafka_append", "--conf", "spark.driver.host=x"), "--conf spark.driver.host is the environment's own"),
    (("run", "kafka_append", "--conf", "=foo"), "--conf '=foo' has no key: write --conf KEY=VALUE"),
    (("run", "kafka_append", "--conf", "foo"), "--conf 'foo' has no value: write --conf KEY=VALUE"),
    (
        ("run", "kafka_append", "--conf", "sql.shuffle.partitions=4"),
        "--conf 'sql.shuffle.partitions' is no property of Spark, which begins with spark.: write spark.sql.shuffle",
    ),
    (
        ("run", "kafka_append", "--conf", "spark.a=1", "--conf", "spark.a=2"),
        "--conf spark.a is given twice, as '1' and as '2': leave one out",
    ),
    (
        ("certify", "--resume", ".", "--points", "lines", "--no-watch", "--attach", "dev", "--parallel", "2"),
        "--resume goes on with the options of its sweep: leave --no-watch, --points, --attach out, or certify without",
    ),
    (
        ("certify", "kafka_append", "--batches", "1000", "--rows", "1000"),
        "9612000 records: give fewer, for at most 1000000",
    ),
    (("run", "--sink", "kafka_append", "--runs", ""), "--runs is empty: leave it out, or give a value"),
    (("run", "--sink", "kafka_append", "--run-directory="), "--run-directory is empty: leave it out, or give a value"),
    (("certify", "--resume", ""), "--resume is empty: leave it out, or give a value"),
    (("check", ""), "RUN is empty: give a value"),
    (("run", ""), "SINK is empty: give a value"),
    (("certify", ""), "SINK is empty: leave it out, or give a value"),
    (("bench", "guarantees", ""), "SINKS is empty"),
    (("phases", "--sink", ""), "--sink is empty: leave it out, or give a value"),
    (("sinks", "--job", ""), "--job is empty"),
    (("plan", "check", "--file", ""), "--file is empty"),
    (("plan", "check", ""), "TEXT is empty"),
    (("doctor", "--python", ""), "--python is empty"),
    (("doctor", "--every-release"), "--every-release needs --probes"),
    (("setup", "--python", ""), "--python is empty"),
    (("down", "--name", ""), "--name is empty"),
    (("certify", "b\udcffd.py"), "SINK 'b\\udcffd.py' is no UTF-8 text: give another"),
    (("run", "no_such", "--conf", "spark.x=\udcff"), "--conf 'spark.x=\\udcff' is no UTF-8 text: give another"),
    (("check", "\udcff"), "RUN '\\udcff' is no UTF-8 text: give another"),
    (("up", "--name", "../../etc"), "an environment cannot be called '../../etc': use up to 32 letters, digits, - and"),
    (("down", "--name", "../../etc"), "an environment cannot be called '../../etc'"),
]


@pytest.mark.parametrize(("words", "message"), WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_a_wrong_choice_is_refused_with_those_that_there_are(
    words: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sessions, "Session", lambda *arguments: pytest.fail("a session was opened"))
    monkeypatch.setattr(environment, "run_setup", lambda **arguments: pytest.fail("something was fetched"))
    assert execute(words) == USAGE
    said = capsys.readouterr().err
    assert message in said
    assert said.startswith("onceproof: ")
    assert said.count("\n") == (3 if said.startswith("onceproof: plan, line") else 1)


@pytest.mark.parametrize(
    "words",
    [
        ("run", LONG),
        ("certify", f"{LONG}.py"),
        ("phases", "--sink", LONG),
        ("sinks", "--job", LONG),
        ("check", LONG),
        ("certify", "--resume", LONG),
    ],
    ids=lambda words: " ".join(words).replace(LONG, "LONG"),
)
def test_a_name_that_no_file_can_have_is_refused(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(words) == USAGE
    said = capsys.readouterr().err
    assert said.startswith(f"onceproof: the name {LONG}")
    assert said.endswith(" is too long for a file: give a shorter one\n")
    assert said.count("\n") == 1


def test_a_plans_text_that_is_longer_than_a_files_name_is_told_from_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["run", "kafka_append", "--plan", f"at(1s) -> kill(driver) # {LONG}"]) == USAGE
    assert "give the plan's text with --fault" in capsys.readouterr().err


def test_a_plan_file_may_have_an_arrow_in_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a->b").write_text("sink.comit:after -> kill(driver)")
    assert execute(["run", "kafka_append", "--plan", "a->b"]) == USAGE
    assert "did you mean sink.commit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("plan", "check", "--file", "link"), "plan file link is a link that leads to no file: give the path of a"),
        (("run", "kafka_append", "--plan", "link"), "plan file link is a link that leads to no file: give the path"),
        (("check", "link"), "link is a link that leads to no file: give the path of a run directory"),
        (("plan", "check", "--file", "latin.plan"), "plan file latin.plan is no UTF-8 text: save it as UTF-8"),
        (("run", "kafka_append", "--plan", "latin.plan"), "plan file latin.plan is no UTF-8 text: save it as UTF-8"),
        (("sinks", "--job", "alone.py"), "--job alone.py has no expectation: put alone.sql next to it"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_as_it_is(
    words: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("link").symlink_to("nowhere")
    Path("latin.plan").write_bytes(b"\xe9")
    Path("alone.py").touch()
    assert execute(words) == USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"onceproof: {message}")


@pytest.mark.parametrize("words", [("doctor",), ("run", "kafka_append"), ("phases",)])
def test_a_current_directory_that_is_gone_is_named(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert execute(words) == USAGE
    assert capsys.readouterr().err == "onceproof: the current directory is gone: change to another\n"


def test_a_directory_whose_path_is_no_text_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No document can hold it."""
    odd = tmp_path / "n\udcff"
    odd.mkdir()
    (tmp_path / "link").symlink_to(odd)
    directory = new_run_directory(tmp_path, tmp_path / "link" / "a")
    with (
        pytest.raises(UsageError, match=r"run directory '.*n\\udcff/a' is no UTF-8 text: name another with"),
        directory,
    ):
        pytest.fail("it was made")
    monkeypatch.chdir(odd)
    assert execute(["phases"]) == USAGE
    assert (
        capsys.readouterr().err
        == f"onceproof: the current directory {str(odd)!r} is no UTF-8 text: change to another\n"
    )


def test_a_known_failure_is_found_though_a_directory_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zombie_driver").mkdir()
    assert execute(["run", "kafka_append", "--plan", "zombie_driver", "--brokers", "9"]) == USAGE
    assert "--brokers 9 is not possible" in capsys.readouterr().err


def test_a_plan_file_may_begin_with_a_byte_order_mark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.plan"
    file.write_text("sink.write:after[batch=1] -> kill(driver)\n", encoding="utf-8-sig")
    assert execute(["plan", "check", "--file", str(file)]) == HELD
    assert capsys.readouterr().out == "sink.write:after[batch=1] -> kill(driver)\n"


def test_the_same_property_may_be_given_twice_with_one_value(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["run", "no_such", "--conf", "spark.a=1", "--conf", "spark.a=1"]) == USAGE
    assert "no sink is called 'no_such'" in capsys.readouterr().err


OF_THE_ENVIRONMENT = [
    (("--brokers", "4"), USAGE, "--brokers 4 is not possible: use 1 to 3"),
    (("--brokers", "0"), USAGE, "--brokers 0 is not possible: use 1 to 3"),
    (("--brokers", "0", "--env", "docker"), USAGE, "--brokers 0 is not possible: the docker environment has 3"),
    (("--master", "yarn"), USAGE, "--master 'yarn' is unknown: use local[n]"),
    (("--master", "yarn", "--env", "docker"), USAGE, "--master 'yarn' is unknown: use standalone, or local[n]"),
    (("--master", ""), USAGE, "--master is empty: leave it out, or give a value"),
    (("--image", "mine"), USAGE, "--image and --compose-file choose containers: give --env docker with them"),
    (("--compose-file", "no.yml", "--env", "docker"), USAGE, "--compose-file no.yml does not exist"),
    (("--compose-file", "/tmp", "--env", "docker"), USAGE, "--compose-file /tmp is a directory: give the path of an"),
    (("--master", "local[99999999999999999999]"), USAGE, "--master 'local[99999999999999999999]' is unknown: use lo"),
    (("--master", "local[2,\u0663]"), USAGE, "is unknown: use local[n], local[n,m] with m tries of a task"),
    (("--attach", "../../etc"), USAGE, "an environment cannot be called '../../etc': use up to 32 letters, digits"),
    (("--attach", "nope"), UNAVAILABLE, "no environment called nope is up: 'onceproof up --name nope' starts one"),
    (("--python", "/no/python"), UNAVAILABLE, "the job's interpreter /no/python does not run"),
]


@pytest.mark.parametrize("command", ["run", "certify"])
@pytest.mark.parametrize(
    ("options", "code", "message"), OF_THE_ENVIRONMENT, ids=[" ".join(one) for one, _, _ in OF_THE_ENVIRONMENT]
)
def test_an_environment_that_cannot_be_is_refused_before_a_run_directory_is_made(
    command: str,
    options: tuple[str, ...],
    code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "opened", lambda options: pytest.fail("a session was opened"))
    monkeypatch.setattr(certify, "new_run_directory", lambda *arguments: pytest.fail("a directory was made"))
    assert execute([command, "kafka_append", "--run-directory", "out", *options]) == code
    assert message in capsys.readouterr().err


def test_a_directory_is_no_sink_and_a_null_byte_has_no_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sinks").mkdir()
    (tmp_path / "mine.py").write_bytes(b"a\0b")
    assert (execute(["run", "sinks"]), execute(["certify", "mine.py"])) == (USAGE, USAGE)
    of_directory, of_byte = capsys.readouterr().err.splitlines()
    assert "sink file sinks is a directory: give the path of a Python file" in of_directory
    assert "mine.py: SyntaxError: source code string cannot contain null bytes" in of_byte


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def (:", "mine.py, line 1: SyntaxError: invalid syntax"),
        ("a\0b", "mine.py: SyntaxError: source code string cannot contain null bytes"),
    ],
)
def test_a_plan_is_not_checked_against_a_sink_that_cannot_be_parsed(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sink = tmp_path / "mine.py"
    sink.write_text(text)
    assert execute(["plan", "check", "sink.write:before -> kill(driver)", "--sink", str(sink)]) == USAGE
    assert capsys.readouterr().err == f"onceproof: sink file {tmp_path / message}\n"


def test_a_plan_for_several_brokers_is_checked_with_so_many(capsys: pytest.CaptureFixture[str]) -> None:
    plan = "set brokers = 3; sink.write:after[batch=1] -> kill(driver)"
    assert execute(["plan", "check", plan, "--sink", "kafka_append"]) == HELD
    assert capsys.readouterr().out.strip() == plan


@pytest.mark.parametrize(
    ("plan", "options"),
    [
        ("sink.write:after[batch=7] -> kill(driver)", ("--batches", "8")),
        ("sink.write:after -> kill(broker, which=broker2)", ("--sink", "kafka_append", "--brokers", "2")),
        ("sink.write:after -> kill(broker, which=broker3)", ()),
        ("batch.commit:before -> kill(driver)", ("--sink", "kafka_append", "--trigger", "asyncProgress=1 second")),
        ("request:before[service=api, kind=PUT] -> drop", ("--sink", "asks.py", "--proxy", "api=127.0.0.1:1")),
        ("request:before[kind=PUT] -> drop; request:before[kind=COMMIT] -> drop", ()),
        ("request:before[kind=EndTxn] -> answer(NOT_COORDINATOR); lookup:before -> drop", ()),
        ("line[mine.py:42] -> fail; state.commit:after -> kill(driver)", ()),
    ],
)
def test_a_plan_that_some_trial_can_have_is_good(
    plan: str,
    options: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("asks.py").write_text('def write_batch(df, batch_id, target):\n    ask(target.proxy["api"])\n')
    assert execute(["plan", "check", plan, *options]) == HELD, capfd.readouterr().err


NEEDS_ANOTHER_SPARK = "iceberg_streaming"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "--fault", "sink.comit:after -> kill(driver)"), "sink.commit"),
        (("run", "--run-directory", "used"), "run directory used is not empty"),
        (("run", "--rows", "100000", "--batches", "1000"), "give fewer"),
        (("certify", "--points", "nope"), "--points 'nope' is unknown"),
        (("certify", "--run-directory", "used"), "run directory used is not empty"),
    ],
)
def test_what_is_refused_is_refused_before_an_interpreter_is_made(
    words: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("used").mkdir()
    Path("used/journal.jsonl").touch()
    for module in (run, certify):
        monkeypatch.setattr(module, "with_release", lambda *arguments: pytest.fail("an interpreter was made"))
    assert execute([words[0], NEEDS_ANOTHER_SPARK, *words[1:]]) == USAGE
    assert message in capsys.readouterr().err


def test_a_bench_refuses_a_sink_before_the_first_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "opened", lambda options: pytest.fail("a session was opened"))
    assert execute(["bench", "guarantees", "kafka_append", NEEDS_ANOTHER_SPARK]) == USAGE
    assert "would run it: leave it out, since benches run with" in capsys.readouterr().err


@pytest.mark.parametrize("sink", [("no_such.py",), ("--sink", "no_such.py")])
@pytest.mark.parametrize("command", ["run", "certify"])
def test_a_sink_is_named_with_and_without_its_option(
    command: str, sink: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute([command, *sink]) == USAGE
    assert "sink file no_such.py does not exist" in capsys.readouterr().err


def test_a_bad_plan_is_found_before_the_workload_is_computed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(request, "check_job", lambda job, workload: pytest.fail("the workload was computed"))
    assert execute(["run", "--sink", "kafka_append", "--fault", "sink.comit:after -> kill(driver)"]) == USAGE
    assert "sink.commit" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "certify"])
@pytest.mark.parametrize(
    ("sink", "message"),
    [
        ("file_rename", "sink file_rename.py is of a kind that Spark gives no updates"),
        ("postgres_latest", "sink postgres_latest.py holds rows of id, key, value, event_time, payload (HOLDS), but "),
    ],
)
def test_a_sink_that_does_not_fit_the_job_is_refused_before_a_run_directory_is_made(
    command: str,
    sink: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for module in (run, certify):
        monkeypatch.setattr(module, "opened", lambda options: pytest.fail("a session was opened"))
    assert execute([command, sink, "--job", "wordcount", "--run-directory", "refused"]) == USAGE
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["conf", "jars", "attach", "runs", "deadline", "sink-deadline", "settle-deadline"])
def test_up_takes_no_option_of_which_it_makes_no_use(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["up", f"--{option}", "1"]) == USAGE
    assert f"onceproof: Unknown option: --{option}." in capsys.readouterr().err


@pytest.mark.parametrize("words", [(), *((command,) for command in COMMANDS), ("plan", "check")])
def test_each_command_has_its_help(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert execute([*words, "--help"]) == HELD
    shown = capsys.readouterr().out
    assert shown.startswith(f"Usage: onceproof {' '.join(words)}")
    assert "default: ()" not in shown


def raised(error: BaseException, patch: pytest.MonkeyPatch) -> int:
    """The exit code of a command in which this comes up."""

    def fail() -> None:
        raise error

    patch.setattr(lists, "reference_sinks", fail)
    return execute(["sinks"])


@pytest.mark.parametrize(
    "error", [KeyError("batch"), BrokenPipeError(), OSError(errno.EIO, "I/O error"), RuntimeError()]
)
def test_a_bug_of_onceproof_is_no_broken_claim(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert raised(error, monkeypatch) == INTERNAL
    *trace, last = capsys.readouterr().err.splitlines()
    assert trace[0] == "Traceback (most recent call last):"
    assert last == "onceproof: this is a bug of onceproof and no verdict: please report the lines above"


@pytest.mark.parametrize("name", ["locked/mine.py", b"locked/mine.py", Path("locked/mine.py")])
def test_a_path_that_may_not_be_read_is_no_bug(
    name: str | bytes | Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As Path.is_file raises it for what lies in a directory that may not be entered."""
    assert raised(OSError(errno.EACCES, "Permission denied", name), monkeypatch) == USAGE
    said = (
        "locked/mine.py cannot be read (Permission denied): give another path, or change its permissions or those of "
    )
    assert capsys.readouterr().err == f"onceproof: {said}what it is in\n"


def test_a_permission_that_is_refused_for_no_path_is_a_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert raised(PermissionError(errno.EPERM, "Operation not permitted"), monkeypatch) == INTERNAL
    assert capsys.readouterr().err.startswith("Traceback")


def test_what_the_terminals_encoding_lacks_is_escaped_as_in_json(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="ascii") for _ in range(2))
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", err)
    monkeypatch.setattr(lists, "known_failures", list)
    monkeypatch.setattr(lists, "_show", lambda rows, json, columns: say(json_module.dumps(TEXT, ensure_ascii=False)))
    with pytest.raises(SystemExit) as ended:
        main(["plans"])
    assert ended.value.code == HELD
    assert json_module.loads(out.buffer.getvalue()) == TEXT  # type: ignore[attr-defined]
    with pytest.raises(SystemExit) as ended:
        main(["run", TEXT])
    assert ended.value.code == USAGE
    assert b"caf\\u00e9" in err.buffer.getvalue()  # type: ignore[attr-defined]


def test_a_full_disk_and_an_interrupt_are_no_bugs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert raised(OSError(errno.ENOSPC, "No space left on device", "/runs/x"), monkeypatch) == UNAVAILABLE
    assert raised(KeyboardInterrupt(), monkeypatch) == INTERRUPTED
    said = ["onceproof: No space left on device: /runs/x: free some and run again", "onceproof: interrupted"]
    assert capsys.readouterr().err.splitlines() == said
