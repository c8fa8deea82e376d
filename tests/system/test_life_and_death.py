"""A command that dies leaves nothing; commands side by side do not meet; what is stored is judged alike again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Command, Ended, InProcess
from onceproof.harness.runtime import processes
from onceproof.harness.runtime.guardian import MARK
from onceproof.harness.runtime.waiting import NotYet, wait_for
from trials import long

DUPLICATES = ("--sink", "kafka_append", "--fault", "sink.commit:after[batch=1] -> kill(driver)")
HOLDS = ("--sink", "postgres_upsert", "--fault", "sink.write:after[batch=1] -> kill(driver)")
SMALL = ("--batches", "3", "--rows", "24")
STRICT = ("--claim", "exactly-once")
SECONDS = 30.0
"""Within which nothing of a command is left, however it ended: two on a quiet machine, seven with a load of 14."""

ONE_LINE_SINK = """
import json
from pathlib import Path

GUARANTEE = "exactly-once"
SERVICES = ("directory",)

def write_batch(df, batch_id, target):
    Path(target.directory, str(batch_id)).write_text("\\n".join(df.toJSON().collect()))

def read(target):
    return [json.loads(line) for file in Path(target.directory).iterdir() for line in file.read_text().splitlines()]
"""


def guardian_of(command: subprocess.Popen[str]) -> str:
    """The identity of the guardian that a command has started."""
    for row in processes.table().values():
        words = processes.command(row.pid)
        if row.alive and any(word.endswith("guardian_process.py") for word in words) and str(command.pid) in words:
            return row.identity
    raise AssertionError(f"command {command.pid} has no guardian")


def left_of(guardian: str) -> list[str]:
    """Processes and state directories of a guardian, itself included."""
    owners = Path(tempfile.gettempdir()).glob("onceproof-*/owner")
    directories = [str(owner.parent) for owner in owners if guardian in owner.read_text().split()]
    marked = [str(process) for process in processes.marked(MARK, guardian, processes.table())]
    return [*marked, *directories, *([f"guardian {guardian}"] if processes.lives(guardian) else [])]


def nothing_left_of(guardian: str) -> bool | NotYet:
    left = left_of(guardian)
    return NotYet(", ".join(left)) if left else True


def await_point(command: subprocess.Popen[str], journal: Path) -> None:
    """Return once a batch of the trial is being handed to its sink."""

    def seen() -> bool | NotYet:
        assert command.poll() is None, command.communicate()
        text = journal.read_text() if journal.exists() else ""
        return '"phase": "sink.write"' in text or NotYet(text.splitlines()[-1] if text else "no journal")

    wait_for(seen, 300, "the first sink.write")


def test_sigkill_in_mid_trial_leaves_nothing_and_the_next_run_works(onceproof: Command, tmp_path: Path) -> None:
    command = onceproof.start("run", *HOLDS, *SMALL, "--run-directory", "killed")
    await_point(command, tmp_path / "killed" / "journal.jsonl")
    guardian = guardian_of(command)
    assert len(left_of(guardian)) > 5, "a broker, a database, a driver, their directory"
    command.kill()
    command.communicate()
    wait_for(lambda: nothing_left_of(guardian), SECONDS, "the end of all that the command had started")
    again = onceproof("run", *HOLDS, *SMALL, "--json")
    assert (again.code, again.json["verdict"]) == (0, "pass"), again


def run_of_a_trial(onceproof: Command, tmp_path: Path) -> tuple[subprocess.Popen[str], Path]:
    command = onceproof.start("run", *HOLDS, "--run-directory", "run")
    return command, tmp_path / "run" / "journal.jsonl"


def sweep_of_a_sink(onceproof: Command, tmp_path: Path) -> tuple[subprocess.Popen[str], Path]:
    (tmp_path / "mine.py").write_text(ONE_LINE_SINK)
    command = onceproof.start(
        "certify", "mine.py", "--points", "sink.write:after", "--batch", "1", *SMALL, "--run-directory", "run"
    )
    return command, tmp_path / "run" / "001" / "journal.jsonl"


@pytest.mark.parametrize(
    ("start", "number"),
    [(run_of_a_trial, signal.SIGINT), long(sweep_of_a_sink, signal.SIGINT), long(run_of_a_trial, signal.SIGTERM)],
)
def test_a_command_that_is_interrupted_ends_soon_and_leaves_nothing(
    onceproof: Command,
    tmp_path: Path,
    start: Callable[[Command, Path], tuple[subprocess.Popen[str], Path]],
    number: signal.Signals,
) -> None:
    command, journal = start(onceproof, tmp_path)
    await_point(command, journal)
    guardian = guardian_of(command)
    begun = time.monotonic()
    command.send_signal(number)
    ended = onceproof.end(command)
    assert time.monotonic() - begun < SECONDS
    assert (ended.code, ended.err) == (130, "onceproof: interrupted\n")
    assert left_of(guardian) == []


def verdict_of(ended: Ended) -> dict[str, object]:
    """What must be the same each time: not processes, run ids, times and places."""
    found = ended.json
    return {
        "verdict": (found["verdict"], found["exactly_once"], found["guarantee"], found["claim"]),
        "anomalies": found["anomalies"],
        "where": [(one["kind"], one["batches"], one["partitions"], one["count"]) for one in found["anomaly_details"]],
        "records": found["evidence"]["records"],
        "faults": [(one["text"], one["confirmed"], one["replay"]["required"]) for one in found["faults"]],
        "input": (found["plan"], found["workload"]),
    }


@pytest.mark.long
def test_two_runs_at_once_end_alike_and_a_stored_run_is_judged_as_it_was(
    onceproof: Command, in_process: InProcess, tmp_path: Path
) -> None:
    commands = [
        onceproof.start("run", *DUPLICATES, *STRICT, *SMALL, "--json", "--run-directory", name) for name in ("a", "b")
    ]
    one, other = (onceproof.end(command) for command in commands)
    assert one.code == other.code == 1, one
    assert verdict_of(one) == verdict_of(other)
    assert one.json["anomalies"] == {"duplicated": one.json["evidence"]["records"]["batch_sizes"]["1"]}
    again = in_process("check", "a", "--json")
    stored = json.loads((tmp_path / "a" / "trial.json").read_text())
    assert (again.code, stored) == (1, one.json)
    assert again.json == {name: stored[name] for name in again.json}
    lenient = in_process("check", "a", "--claim", "at-least-once", "--json")
    assert (lenient.code, lenient.json["verdict"], lenient.json["exactly_once"]) == (0, "pass", "fail")
    damaged(in_process, tmp_path)


def damaged(in_process: InProcess, tmp_path: Path) -> None:
    """Each file without which the run cannot be judged."""
    for name in ("evidence.json", "truth.parquet", "acks.parquet", "reading-2.parquet", "journal.jsonl"):
        shutil.copytree(tmp_path / "a", tmp_path / "damaged", dirs_exist_ok=True)
        (tmp_path / "damaged" / name).write_text("{")
        ended = in_process("check", "damaged")
        assert (ended.code, ended.out, len(ended.err.splitlines())) == (2, "", 1), ended
        assert "damaged" in ended.err


@pytest.mark.long
def test_an_environment_that_is_up_serves_a_run_and_goes_down(onceproof: Command) -> None:
    name = f"life-{os.getpid()}"
    up = onceproof("up", "--name", name, "--json")
    try:
        assert (up.code, up.json["name"]) == (0, name)
        ran = onceproof("run", "--sink", "postgres_upsert", *SMALL, "--attach", name, "--json")
        assert (ran.code, ran.json["verdict"]) == (0, "pass"), ran
        assert "no fault was planned" in ran.json["reason"]
    finally:
        down = onceproof("down", "--name", name)
    assert (down.code, down.err) == (0, "")
    assert not processes.lives(up.json["process"])
    gone = onceproof("down", "--name", name)
    assert (gone.code, len(gone.err.splitlines())) == (4, 1)
