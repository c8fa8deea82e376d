"""Whatever is wrong with what a user gives: one clear line on stderr, nothing on stdout, exit code 2 or 4."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Command, Ended, InProcess
from onceproof.harness.environments import holder
from onceproof.harness.environments.local import LocalOptions
from trials import long

WHOLE = {
    "GUARANTEE": 'GUARANTEE = "exactly-once"',
    "SERVICES": 'SERVICES = ("directory",)',
    "write_batch": "def write_batch(df, batch_id, target):\n    pass",
    "read": "def read(target):\n    return []",
}
"""A whole sink, part by part."""

FAULT = ("--fault", "sink.write:after[batch=1]#99 -> kill(driver)")
SMALL = ("--batches", "2", "--rows", "12")


def written(path: Path, **parts: str) -> str:
    """A sink file like WHOLE but for ``parts``; an empty part is left out. Returns its path."""
    path.write_text("import os, sys, time\n" + "\n\n".join((WHOLE | parts).values()) + "\n")
    return str(path)


def refused(ended: Ended, *words: str, code: int = 2) -> None:
    """One line on stderr that has all of ``words``."""
    assert ended.code == code, ended
    assert ended.out == ""
    (line,) = ended.err.splitlines()
    assert line.startswith("onceproof: ")
    assert [word for word in words if word not in line] == [], line
    assert "Traceback" not in line


BAD_PLANS = {
    "sink.comit:after[batch=1] -> kill(driver)": "sink.commit",
    "sink.write:after[batch=1] -> explode(driver)": "explode",
    "sink.write:after[batch=1 -> kill(driver)": "]",
    "sink.write:after[bach=1] -> kill(driver)": "bach",
    "sink.write:after[batch=x] -> kill(driver)": "batch",
    "sink.write:after[batch=1] -> kill(drivers)": "driver",
    "sink.write:after[batch=1] -> kill(driver) until": "",
    "sink.write:after[batch=1]": "",
    "task.commit:before[batch=1] -> kill(driver)": "batch.commit",
    "line[postgres_upsert.py:4000] -> kill(driver)": "4000",
    "task.run:before -> kill(executor)": "standalone",
}


@pytest.mark.parametrize("plan", BAD_PLANS)
def test_a_bad_plan_is_refused_before_anything_starts(in_process: InProcess, tmp_path: Path, plan: str) -> None:
    ended = in_process("run", "--sink", "postgres_upsert", "--fault", plan)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("onceproof: ")
    assert BAD_PLANS[plan] in ended.err
    assert "Traceback" not in ended.err
    assert list(tmp_path.iterdir()) == []


BAD_OPTIONS = {
    "job": (["--job", "missing.py"], "--job missing.py does not exist: give the path of a PySpark application"),
    "expectation": (["--expect", "missing.sql"], "--expect missing.sql does not exist"),
    "conf": (["--conf", "spark.x"], "--conf 'spark.x' has no value"),
    "proxy": (["--proxy", "api=localhost"], "'localhost' is no address"),
    "own service": (["--proxy", "api=127.0.0.1:1"], "nothing answers there"),
    "jars": (["--jars", "missing.jar"], "--jars missing.jar does not exist"),
    "master": (["--master", "yarn"], "'yarn'"),
    "claim": (["--claim", "twice"], '"twice" for --claim. Choose from: "exactly-once"'),
    "no rows": (["--rows", "0"], "rows"),
    "no batches": (["--batches", "0"], "batches"),
    "no partitions": (["--partitions", "0"], "partitions"),
    "rows as text": (["--rows", "many"], "--rows"),
    "brokers": (["--brokers", "9"], "use 1 to 3"),
    "deadline": (["--deadline", "0"], 'Invalid value "0.0" for --deadline'),
    "option": (["--clam", "exactly-once"], "--clam"),
    "plan file": (["--plan", "missing.plan"], "plan file missing.plan does not exist"),
    "attach": (["--attach", "nobody"], "onceproof up"),
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_a_bad_option_is_refused_and_named(in_process: InProcess, case: str) -> None:
    options, words = BAD_OPTIONS[case]
    refused(in_process("run", "--sink", "kafka_append", *options), words, code=4 if case == "attach" else 2)


def test_what_is_to_be_swept_is_one_of_the_kinds(in_process: InProcess) -> None:
    refused(in_process("certify", "kafka_append", "--points", "some"), "'some'", "phases, lines, all")
    refused(in_process("certify", "kafka_append", "--batch", "7"), "--batch 7", "0 to 4")
    refused(in_process("certify", "kafka_append", "--parallel", "0"), '"0" for --parallel')


def test_a_command_that_is_none_is_named(onceproof: Command) -> None:
    refused(onceproof("rum"), "rum")
    refused(onceproof("run"), "--sink")


def test_a_sink_that_is_not_there_is_refused(in_process: InProcess, tmp_path: Path) -> None:
    refused(in_process("run", "--sink", "no_such"), "'no_such'", "onceproof sinks")
    refused(in_process("run", "--sink", "no_such.py"), "no_such.py does not exist")
    refused(in_process("run", "--sink", str(tmp_path)), "is a directory")
    refused(in_process("certify", "no_such.py"), "no_such.py does not exist")


def test_readings_while_the_job_runs_can_be_left_out(in_process: InProcess) -> None:
    refused(in_process("run", "--no-watch", "--sink", "no_such"), "'no_such'")
    refused(in_process("certify", "--no-watch", "no_such"), "'no_such'")


BAD_SINKS = {
    "a syntax error": ({"read": "def read(target:\n    pass"}, "SyntaxError"),
    "no write_batch and no attach": ({"write_batch": ""}, "neither write_batch(df, batch_id, target) nor attach"),
    "both": ({"read": WHOLE["read"] + "\n\ndef attach(stream, target):\n    pass"}, "both write_batch and attach"),
    "no target": (
        {"write_batch": "def write_batch(df, epoch_id):\n    pass"},
        "write_batch(df, epoch_id) is called with other arguments: write write_batch(df, batch_id, target)",
    ),
    "a service of one's own without --proxy": (
        {"write_batch": "def write_batch(df, batch_id, target):\n    target.proxy['api']"},
        "target.proxy['api'] is a service of your own: say where it is, by --proxy api=HOST:PORT",
    ),
    "no read": ({"read": ""}, "has no read(target)"),
    "no GUARANTEE": ({"GUARANTEE": ""}, "has no GUARANTEE"),
    "an unknown GUARANTEE": ({"GUARANTEE": "GUARANTEE = 'twice'"}, "'twice' is unknown: it is one of exactly-once"),
    "an unknown service": ({"SERVICES": "SERVICES = ('mongo',)"}, "'mongo'"),
    "services as text": ({"SERVICES": "SERVICES = 'postgres'"}, 'SERVICES = ("postgres",)'),
    "raises at import": ({"GUARANTEE": "raise OSError('no\\nluck')"}, "line 2 failed while it was imported: OSError"),
    "sys.exit at import": ({"GUARANTEE": "sys.exit(0)"}, "exits the process"),
    "os._exit at import": ({"GUARANTEE": "os._exit(0)"}, "ended its process while it was imported (exit code 0)"),
    "hangs at import": ({"GUARANTEE": "time.sleep(600)"}, "hangs while it was imported"),
    "a missing module": ({"GUARANTEE": "import no_such_module"}, "No module named 'no_such_module'"),
    "a module of a package": (
        {"GUARANTEE": "from .tables import EVENTS"},
        "its directory is on the path, import what lies there by its plain name",
    ),
    "a coroutine": (
        {"write_batch": "async def write_batch(df, batch_id, target):\n    pass"},
        "write_batch is a coroutine or a generator",
    ),
    "a generator": (
        {"write_batch": "def write_batch(df, batch_id, target):\n    yield df"},
        "write_batch is a coroutine or a generator",
    ),
    "a coroutine of a class": (
        {
            "write_batch": "class Writer:\n    async def __call__(self, df, batch_id, target):\n        pass\n\n"
            "write_batch = Writer()"
        },
        "write_batch is a coroutine or a generator",
    ),
    "a service that its text does not name": (
        {"SERVICES": "globals().update(SERVICES=('postgres',))"},
        "service 'postgres' is not in the text of SERVICES",
    ),
}


@pytest.mark.parametrize("case", BAD_SINKS)
def test_a_sink_that_is_not_whole_is_refused(in_process: InProcess, tmp_path: Path, case: str) -> None:
    parts, words = BAD_SINKS[case]
    sink = written(tmp_path / "mine.py", **parts)
    deadline = "3" if case == "hangs at import" else "20"
    refused(in_process("run", "--sink", sink, *FAULT, "--sink-deadline", deadline), "mine.py", words)


def test_a_service_that_a_sink_asks_for_is_named_before_a_sweep_starts(in_process: InProcess, tmp_path: Path) -> None:
    sink = written(tmp_path / "mine.py", read="def read(target):\n    return target.proxy['api']")
    refused(in_process("certify", sink), "mine.py", "--proxy api=HOST:PORT")


def test_a_sink_in_another_encoding_is_refused(in_process: InProcess, tmp_path: Path) -> None:
    (tmp_path / "latin.py").write_bytes(b"NAME = '\xe9'\n")
    refused(in_process("run", "--sink", "latin.py"), "latin.py")


@pytest.fixture(scope="module")
def attached() -> Iterator[str]:
    """An environment that all tests of this module attach to: their trials fail early."""
    name = f"bad-input-{os.getpid()}"
    holder.up(name, LocalOptions(), ttl=1800)
    yield name
    holder.down(name)


FAILING = {
    "raises in prepare": ({"SERVICES": "def prepare(target):\n    1 / 0"}, "failed in prepare: ZeroDivisionError"),
    "a target that was not asked for": (
        {"SERVICES": "def prepare(target):\n    open(target.directory)"},
        "target.directory is None, because SERVICES does not name 'directory': add it there",
    ),
    "sys.exit in prepare": ({"SERVICES": "def prepare(target):\n    sys.exit('enough')"}, "exits the process"),
    "os._exit in prepare": ({"SERVICES": "def prepare(target):\n    os._exit(3)"}, "in prepare (exit code 3)"),
    "hangs in prepare": ({"SERVICES": "def prepare(target):\n    time.sleep(600)"}, "hangs in prepare"),
    "rows before the start": ({"read": "def read(target):\n    return [{'id': 1}]"}, "1 rows before the job"),
}


@pytest.mark.parametrize("case", FAILING)
def test_a_sink_that_fails_before_the_job_is_refused(
    onceproof: Command, attached: str, tmp_path: Path, case: str
) -> None:
    parts, words = FAILING[case]
    sink = written(tmp_path / "mine.py", **parts)
    deadline = "3" if case.startswith("hangs") else "20"
    ended = onceproof("run", "--sink", sink, *FAULT, "--attach", attached, "--sink-deadline", deadline)
    refused(ended, "mine.py", words)


def write(body: str) -> dict[str, str]:
    return {"write_batch": f"def write_batch(df, batch_id, target):\n    {body}"}


IN_THE_JOB = {
    "raises in write": (write("raise OSError('no luck')"), "mine.py fails in batch 0 by itself", "no luck"),
    "os._exit in write": (write("os._exit(0)"), "mine.py fails in batch 0 by itself", ""),
    # It ends the thread that py4j calls back in, without an answer: Spark waits for ever.
    "sys.exit in write": (write("sys.exit(0)"), "mine.py hangs in batch 0", "--deadline"),
    "hangs in write": (write("time.sleep(600)"), "mine.py hangs in batch 0", "--deadline"),
    "a target that was not asked for": (
        write("open(target.redis)"),
        "mine.py fails in batch 0 by itself",
        "target.redis is None, because SERVICES does not name 'redis'",
    ),
    "raises in read": ({"read": "def read(target):\n    1 / 0"}, "failed in read", "ZeroDivisionError"),
    "exits in read": ({"read": "def read(target):\n    os._exit(1)"}, "ended its process in read", "exit code 1"),
}


IN_SHORT = ("raises in write",)


@pytest.mark.parametrize("case", [case if case in IN_SHORT else long(case) for case in IN_THE_JOB])
def test_a_sink_that_fails_by_itself_is_bad_input_and_no_verdict(
    onceproof: Command, attached: str, tmp_path: Path, case: str
) -> None:
    parts, *words = IN_THE_JOB[case]
    sink = written(tmp_path / "mine.py", **parts)
    deadline = ("--deadline", "12") if "hangs" in words[0] else ()
    refused(onceproof("run", "--sink", sink, *FAULT, *SMALL, *deadline, "--attach", attached), *words)


def test_a_run_directory_that_cannot_be_had_is_refused(in_process: InProcess, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "of").write_text("something")
    for where, what in (("file", "is a file"), ("full", "is not empty")):
        refused(in_process("run", "--sink", "kafka_append", "--run-directory", where), where, what)
    for options in (["--run-directory", "file/below"], ["--runs", "file/below"]):
        refused(in_process("run", "--sink", "kafka_append", *options), "file/below", "cannot be written")


NO_JAVA = {"PATH": str(Path(sys.executable).parent), "JAVA_HOME": "/nonexistent"}


def test_without_java_it_says_what_to_install(onceproof: Command) -> None:
    hidden = "from onceproof.harness import java; java.find_java.__defaults__ = (None, ())"
    program = f"{hidden}; from onceproof.harness.cli import main; main()"
    ended = onceproof("run", "--sink", "kafka_append", command=[sys.executable, "-c", program], env=NO_JAVA)
    refused(ended, "no Java 17 or newer was found", "apt-get install openjdk-17-jre-headless", code=4)


def test_an_interpreter_that_will_not_do_is_refused(onceproof: Command, tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
    bare.chmod(0o755)
    refused(onceproof("run", "--sink", "kafka_append", "--python", "/no/python"), "/no/python", code=4)
    refused(onceproof("run", "--sink", "kafka_append", "--python", str(bare)), "pyspark", code=4)


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for 64 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("a file system can be mounted by root only")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_is_an_environment_that_cannot_be_had(onceproof: Command, tiny: Path) -> None:
    refused(onceproof("run", "--sink", "kafka_append", "--runs", str(tiny / "runs")), str(tiny), "free", code=4)
    refused(onceproof("run", "--sink", "kafka_append", env={"TMPDIR": str(tiny)}), str(tiny), "free", code=4)
    with pytest.raises(OSError, match="space"):
        (tiny / "filler").write_bytes(b"x" * (1 << 20))
    refused(onceproof("run", "--sink", "kafka_append", "--runs", str(tiny / "runs")), str(tiny), "free", code=4)


@pytest.mark.parametrize("damage", ["absent", "empty", "evidence", "journal"])
def test_what_is_no_whole_run_cannot_be_judged(in_process: InProcess, tmp_path: Path, damage: str) -> None:
    run = tmp_path / "run"
    if damage != "absent":
        run.mkdir()
    if damage == "evidence":
        (run / "evidence.json").write_text('{"version": 1, "claim"')
    if damage == "journal":
        (run / "evidence.json").write_text('{"version": 1}')
    refused(in_process("check", str(run)), str(run))
