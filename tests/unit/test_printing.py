"""A pipe that nobody reads any more changes no exit code, and ends nothing but the printing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
from onceproof.assertions import save
from onceproof.harness.cli import execute
from onceproof.harness.console.printing import Terminal, say
from onceproof.harness.errors import BROKE, HELD, UNAVAILABLE, USAGE
from paper_trial import everything_and, evidence, fault, ground_truth, ids_of, killed_in_batch_1


@contextmanager
def nobody_reads() -> Iterator[IO[str]]:
    """Stdout is a pipe whose reader has gone, as with ``| head -0``."""
    reader, writer = os.pipe()
    os.close(reader)
    with pytest.MonkeyPatch.context() as patch, os.fdopen(writer, "w") as stream:
        patch.setattr(sys, "stdout", stream)
        yield stream


@pytest.fixture(params=[BROKE, HELD])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, int]:
    """A run directory, and the exit code of its verdict."""
    rows = everything_and(ids_of(1)) if request.param == BROKE else ground_truth()
    save(evidence(rows, killed_in_batch_1(), fault()), tmp_path)
    return tmp_path, request.param


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_the_exit_code_is_the_verdicts_though_nobody_reads_it(stored: tuple[Path, int], form: tuple[str, ...]) -> None:
    directory, code = stored
    with nobody_reads():
        assert execute(["check", str(directory), *form]) == code


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("run", "--help"), ("sinks",), ("phases", "--json")])
def test_what_is_only_to_be_read_is_no_failure_if_nobody_does(words: tuple[str, ...]) -> None:
    with nobody_reads():
        assert execute(words) == HELD


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
@pytest.mark.parametrize("words", [("sinks",), ("--help",), ("jobs", "--json")], ids=" ".join)
def test_a_stream_that_cannot_be_written_is_named(
    words: tuple[str, ...], terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1" if terminal else "")
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert execute(words) == UNAVAILABLE
    said = "/dev/full cannot be written: No space left on device: send it elsewhere, or free some space, and run again"
    assert capsys.readouterr().err == f"onceproof: {said}\n"


def test_an_exit_code_stands_though_the_reason_cannot_be_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        assert execute(["no_such_command"]) == USAGE


def test_who_prints_goes_on_and_the_rest_goes_nowhere() -> None:
    with nobody_reads() as stream:
        terminal = Terminal()
        for _ in range(2):
            terminal.print("a line of a sweep's lane")
            say("another one")
        stream.write("what is left in a buffer")
        stream.flush()


def test_a_line_goes_to_the_stream_that_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    say("to be read")
    say("what is wrong", sys.stderr)
    assert capsys.readouterr() == ("to be read\n", "what is wrong\n")


def test_without_any_stdout_nothing_is_printed() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        say("nobody is there")
        assert execute(["sinks"]) == HELD
