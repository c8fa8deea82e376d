import os
import signal
from collections.abc import Iterator

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
