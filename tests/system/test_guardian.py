"""The guardian: starts children, and ends everything when its harness dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from onceproof.harness.runtime import processes
from onceproof.harness.runtime.guardian import MARK, Guardian, StartError
from onceproof.harness.runtime.leftovers import remove_leftovers, state_directory
from onceproof.harness.runtime.waiting import wait_for

HARNESS = """
import os, sys, time
from pathlib import Path
from onceproof.harness.runtime.guardian import Guardian
from onceproof.harness.runtime.leftovers import state_directory
guardian = Guardian.start("test")
state = state_directory(guardian)
gate = Path(sys.argv[2]).with_name("gate")
gate.touch()
guardian.remove_on_close(gate, "gate")
child = guardian.spawn(["bash", "-c", sys.argv[1]], dict(os.environ), Path("/"), Path(sys.argv[2]))
print(guardian.identity, state, gate, flush=True)
time.sleep(60)
"""
FAMILY = "(setsid bash -c 'trap \"\" TERM HUP INT; sleep 61 & disown; sleep 62' &) ; sleep 63 & wait"
"""An orphan in a session of its own that ignores signals, with a child, and an ordinary child."""


@pytest.fixture
def guardian() -> Iterator[Guardian]:
    guardian = Guardian.start("test")
    yield guardian
    guardian.close()


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str, Path, Path]]:
    """A harness of its own with FAMILY running: its process, its guardian's identity, state directory and gate."""
    with subprocess.Popen(
        [sys.executable, "-c", HARNESS, FAMILY, str(tmp_path / "log")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            identity, state, gate = process.stdout.readline().split()
            wait_for(lambda: len(guarded(identity)) > 3, 10, "the family of processes")
            yield process, identity, Path(state), Path(gate)
        finally:
            process.kill()


def guarded(identity: str) -> list[processes.Process]:
    return processes.marked(MARK, identity, processes.table())


def test_a_child_runs_with_its_output_in_its_log_and_reports_its_exit_code(guardian: Guardian, tmp_path: Path) -> None:
    script = "echo out; echo err >&2; exit 3"
    child = guardian.spawn(["bash", "-c", script], dict(os.environ), Path("/"), tmp_path / "l")
    assert child.wait(10) == 3
    assert sorted((tmp_path / "l").read_text().split()) == ["err", "out"]


def test_an_orphan_that_cleared_its_environment_is_a_stray_until_it_ends(guardian: Guardian, tmp_path: Path) -> None:
    script = "(setsid env -i sleep 60 &) ; setsid sleep 61 & sleep 62"
    child = guardian.spawn(["bash", "-c", script], dict(os.environ), Path("/"), tmp_path / "log")
    wait_for(lambda: [processes.command(pid) for pid in guardian.strays()] == [["sleep", "60"]], 10, "the stray")
    assert child.pid not in guardian.strays()
    os.kill(guardian.strays()[0], signal.SIGKILL)
    wait_for(lambda: not guardian.strays(), 10, "the end of the stray")


def test_an_orphan_that_is_ending_is_no_stray_though_its_environment_is_gone(
    guardian: Guardian, tmp_path: Path
) -> None:
    """Its memory is given back before it is a zombie: 600 MB of it take the kernel some time. On a busy machine that
    may pass between two looks of ours, so it is tried again."""
    assert any(_seen_without_environment(guardian, tmp_path) for _ in range(20))


def _seen_without_environment(guardian: Guardian, directory: Path) -> int:
    """How often an orphan that was killed was seen so; it is never a stray meanwhile."""
    program = "import time; data = b'x' * (600 << 20); open('ready', 'w'); time.sleep(60)"
    orphaned = ["bash", "-c", f'setsid {sys.executable} -c "{program}" &']
    child = guardian.spawn(orphaned, dict(os.environ), directory, directory / "log")
    assert child.wait(10) == 0
    (orphan,) = guarded(guardian.identity)
    wait_for(lambda: (directory / "ready").exists(), 20, "the program with its memory")
    (directory / "ready").unlink()
    os.kill(orphan.pid, signal.SIGKILL)
    seen = 0
    while processes.lives(orphan.identity):
        seen += not processes.environment(orphan.pid)
        assert guardian.strays() == []
    return seen


def test_a_child_killed_by_a_signal_has_a_negative_exit_code(guardian: Guardian, tmp_path: Path) -> None:
    child = guardian.spawn(["sleep", "60"], dict(os.environ), Path("/"), tmp_path / "log")
    assert child.wait(0) is None
    assert child.kill() == -signal.SIGKILL


def test_a_program_that_does_not_exist_is_said_in_one_line(guardian: Guardian, tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"no-such-program: No such file or directory"):
        guardian.spawn(["/no-such-program"], {}, Path("/"), tmp_path / "log")


def test_children_do_not_ignore_the_signals_that_their_guardian_ignores(guardian: Guardian, tmp_path: Path) -> None:
    child = guardian.spawn(["sleep", "60"], dict(os.environ), Path("/"), tmp_path / "log")
    child.signal(signal.SIGTERM)
    assert child.wait(5) == -signal.SIGTERM


def test_close_ends_children_and_orphans_and_removes_what_it_was_told_to(tmp_path: Path) -> None:
    guardian = Guardian.start("test")
    state = state_directory(guardian)
    guardian.spawn(["bash", "-c", FAMILY], dict(os.environ), state, state / "log")
    wait_for(lambda: len(guarded(guardian.identity)) > 3, 10, "the family of processes")
    begin = time.monotonic()
    guardian.close()
    assert time.monotonic() - begin < 3
    assert guarded(guardian.identity) == []
    assert not state.exists()


def test_exits_are_told_before_anything_is_removed_and_nothing_is_started_any_more(tmp_path: Path) -> None:
    guardian = Guardian.start("test")
    state = state_directory(guardian)
    child = guardian.spawn(["bash", "-c", FAMILY], dict(os.environ), state, state / "log")
    guardian.end_processes()
    assert child.wait(0) == -signal.SIGKILL
    assert guarded(guardian.identity) == []
    assert state.exists(), "threads of the harness may still write to it"
    with pytest.raises(StartError, match="this environment is closed"):
        guardian.spawn(["sleep", "60"], dict(os.environ), Path("/"), tmp_path / "log")
    guardian.close()
    assert not state.exists()


def test_what_a_thread_brings_back_behind_the_guardian_is_removed_before_close_returns(tmp_path: Path) -> None:
    guardian = Guardian.start("test")
    state = state_directory(guardian)
    guardian.end_processes()
    os.kill(int(guardian.identity.split(":")[0]), signal.SIGKILL)
    wait_for(lambda: not processes.lives(guardian.identity), 5, "the guardian's death")
    (state / "late" / "files").mkdir(parents=True)
    guardian.close()
    assert not state.exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_harness_that_dies_by_any_signal_leaves_no_process_and_no_file(
    harness: tuple[subprocess.Popen[str], str, Path, Path], number: signal.Signals
) -> None:
    process, identity, state, gate = harness
    process.send_signal(number)
    wait_for(lambda: not guarded(identity) and not processes.lives(identity), 4, "the end of everything")
    assert not state.exists()
    assert not gate.exists()


def test_a_harness_whose_guardian_dies_ends_at_once_and_takes_everything_with_it(
    harness: tuple[subprocess.Popen[str], str, Path, Path],
) -> None:
    process, identity, state, gate = harness
    os.kill(int(identity.split(":")[0]), signal.SIGKILL)
    assert process.wait(5) == 4
    assert process.stderr is not None
    assert "the guardian process died" in process.stderr.read()
    assert guarded(identity) == []
    assert not state.exists()
    assert not gate.exists()


def test_the_cleanup_ends_what_a_killed_harness_with_a_killed_guardian_left(
    harness: tuple[subprocess.Popen[str], str, Path, Path],
) -> None:
    process, identity, state, _ = harness
    process.send_signal(signal.SIGSTOP)
    os.kill(int(identity.split(":")[0]), signal.SIGKILL)
    process.kill()
    process.wait()
    wait_for(lambda: not processes.lives(identity), 5, "the guardian's death")
    assert guarded(identity)
    remove_leftovers()
    assert guarded(identity) == []
    assert not state.exists()


def test_the_cleanup_leaves_alone_what_is_guarded(guardian: Guardian, tmp_path: Path) -> None:
    state = state_directory(guardian)
    child = guardian.spawn(["sleep", "60"], dict(os.environ), Path("/"), tmp_path / "log")
    remove_leftovers()
    assert child.wait(0) is None
    assert state.exists()
