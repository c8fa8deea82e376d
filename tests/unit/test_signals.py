import os
import signal
import threading
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from onceproof.harness.cli.signals import as_interrupt


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
