"""What ``onceproof certify --resume`` refuses, in one line, before it changes anything. No trial runs."""

from __future__ import annotations

import errno
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from onceproof.harness.certification.certificate import Certificate
from onceproof.harness.certification.settings import SETTINGS
from onceproof.harness.cli import certify, execute, sessions
from onceproof.harness.errors import BROKE, UNAVAILABLE, USAGE
from test_commands import Session
from test_reports import certificate

SINK = """
GUARANTEE = "exactly-once"
def write_batch(df, batch_id, target): ...
def read(target): ...
"""
JOB = "import pyspark\n"
BROKEN = {"a syntax error": "def (", "a null byte": "x = 1\0", "what is nested deeply": "(" * 3000 + ")" * 3000}

Refusal = Callable[..., str]


@pytest.fixture
def sweep(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[object]:
    """A sweep in ``out`` that was cut short, of a sink, a job and a jar of one's own; those that come add an entry."""
    swept: list[object] = []

    def run(*arguments: object, **keywords: object) -> Certificate:
        swept.append(arguments)
        return certificate()

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sessions, "Session", Session)
    monkeypatch.setattr(certify, "run_sweep", run)
    Path("sink.py").write_text(SINK)
    Path("job.py").write_text(JOB)
    Path("job.sql").write_text("SELECT * FROM input")
    with zipfile.ZipFile("further.jar", "w") as jar:
        jar.writestr("a", "")
    words = ["sink.py", "--job", "job.py", "--jars", "further.jar", "--profile", "quick", "--run-directory", "out"]
    assert execute(["certify", *words]) == BROKE
    swept.clear()
    return swept


@pytest.fixture
def refusal(sweep: list[object], capsys: pytest.CaptureFixture[str]) -> Refusal:
    """What is said of a sweep that does not go on."""

    def said(*more: str) -> str:
        capsys.readouterr()
        assert execute(["certify", "--resume", "out", *more]) == USAGE
        assert not sweep, "it has gone on"
        (line,) = capsys.readouterr().err.splitlines()
        return line.removeprefix("onceproof: ")

    return said


def test_a_sweep_that_is_still_running_is_left_alone(
    sweep: list[object], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(os.listdir("out"))

    def another(*arguments: object, **keywords: object) -> Certificate:
        assert execute(["certify", "--resume", "out"]) == USAGE
        sweep.append(arguments)
        return certificate()

    monkeypatch.setattr(certify, "run_sweep", another)
    assert execute(["certify", "--resume", "out"]) == BROKE
    said = f"onceproof: --resume {Path('out').resolve()}: its sweep is still running: wait for its end"
    assert said in capsys.readouterr().err.splitlines()
    assert len(sweep) == 1
    assert sorted(os.listdir("out")) == before, "the lock is no file of its own"


def test_a_sweep_that_has_ended_in_an_error_goes_on(sweep: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object, **keywords: object) -> Certificate:
        raise certify.UsageError("no")

    with monkeypatch.context() as once:
        once.setattr(certify, "run_sweep", broken)
        assert execute(["certify", "--resume", "out"]) == USAGE
    assert execute(["certify", "--resume", "out"]) == BROKE
    assert len(sweep) == 1


def test_a_copy_of_a_sweep_that_is_still_running_may_go_on(sweep: list[object]) -> None:
    Path("copy").mkdir()
    Path("copy", SETTINGS).write_bytes(Path("out", SETTINGS).read_bytes())
    with certify._alone_in(Path("out").resolve()):
        assert execute(["certify", "--resume", "copy"]) == BROKE
    assert len(sweep) == 1


def test_a_file_system_without_locks_is_no_obstacle(sweep: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(*arguments: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(certify.fcntl, "flock", lacking)
    assert execute(["certify", "--resume", "out"]) == BROKE


@pytest.mark.parametrize(
    "words",
    [
        ("--profile", "standard"),
        ("--watch",),
        ("--pack=8",),
        ("--claim", "exactly-once"),
        ("--conf", "spark.a=1", "--conf", "spark.b=2"),
        ("--seed", "1", "--parallel", "2"),
        ("--batch", "1", "--json"),
    ],
    ids=" ".join,
)
def test_an_option_is_refused_though_its_value_is_the_default(words: tuple[str, ...], refusal: Refusal) -> None:
    option = words[0].partition("=")[0]
    left_out = f"--resume goes on with the options of its sweep: leave {option} out, or certify without it"
    assert refusal(*words) == left_out


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("file", ["sink.py", "job.py"])
def test_a_file_that_was_broken_since_is_refused(file: str, text: str, refusal: Refusal) -> None:
    Path(file).write_text(text)
    assert file in refusal()


def test_a_jar_that_is_gone_is_refused(refusal: Refusal) -> None:
    Path("further.jar").unlink()
    assert refusal() == f"--jars {Path('further.jar').resolve()} does not exist: give the path of a jar file"


@pytest.mark.parametrize("kind", [errno.EACCES, errno.EROFS], ids=os.strerror)
def test_a_directory_that_cannot_be_written_is_named(
    kind: int, refusal: Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(path: Path, data: bytes) -> int:
        raise OSError(kind, os.strerror(kind), str(path))

    monkeypatch.setattr(Path, "write_bytes", denied)
    assert refusal() == f"run directory out cannot be written ({os.strerror(kind)}): go on with a copy of it elsewhere"


def test_settings_that_cannot_be_written_are_named(refusal: Refusal, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Path.open

    def denied(path: Path, mode: str = "r", *more: Any, **options: Any) -> Any:
        if path.name == SETTINGS and mode == "r+b":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, mode, *more, **options)

    monkeypatch.setattr(Path, "open", denied)
    found = refusal()
    assert found.startswith(f"{Path('out', SETTINGS).resolve()} cannot be written (Permission denied): ")


def test_a_disk_that_is_full_is_the_environments(sweep: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_bytes", full)
    assert execute(["certify", "--resume", "out"]) == UNAVAILABLE
    assert not sweep
