import os
import signal
import sys
import threading
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from onceproof.harness import start
from onceproof.harness.cli.signals import as_interrupt
from onceproof.harness.errors import INTERRUPTED


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def number(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    before = signal.getsignal(request.param)
    yield request.param
    signal.signal(request.param, before)


def test_a_signal_ends_a_command_as_ctrl_c_does(number: signal.Signals) -> None:
    signal.signal(number, signal.SIG_DFL)
    with pytest.raises(KeyboardInterrupt), as_interrupt():
        os.kill(os.getpid(), number)
    assert signal.getsignal(number) is signal.SIG_DFL


def test_sigint_counts_where_a_shell_had_it_ignored_and_sighup_under_nohup_does_not(number: signal.Signals) -> None:
    signal.signal(number, signal.SIG_IGN)
    interrupted = False
    try:
        with as_interrupt():
            os.kill(os.getpid(), number)
    except KeyboardInterrupt:
        interrupted = True
    assert interrupted is (number is not signal.SIGHUP)


def test_a_signal_in_the_middle_of_entering_a_condition_leaves_it_unlocked() -> None:
    left: list[object] = []
    lock: Any = SimpleNamespace(
        acquire=None,
        release=None,
        __enter__=partial(os.kill, os.getpid(), signal.SIGINT),
        __exit__=lambda *error: left.append(error[0]),
    )

    def enter_and_wait() -> None:
        with threading.Condition(lock):
            pass
        threading.Event().wait(5)

    with pytest.raises(KeyboardInterrupt), as_interrupt():
        enter_and_wait()
    assert left == [None], "the signal was put off until the lock was given back"


class HalfImported(ModuleType):
    def __getattr__(self, name: str) -> object:
        raise KeyboardInterrupt


def test_ctrl_c_while_the_command_line_is_imported_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "onceproof.harness.cli", HalfImported("onceproof.harness.cli"))
    ended: list[int] = []
    monkeypatch.setattr(start.os, "_exit", ended.append)
    start.main()
    assert ended == [INTERRUPTED]
    assert capsys.readouterr().err == "onceproof: interrupted\n"


def test_the_script_is_the_one_that_imports_so() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"onceproof": f"{start.__name__}:main"}
