"""SIGTERM and SIGHUP end a command as Ctrl-C does: everything that it started is ended first.

A shell without job control starts a command in the background with SIGINT ignored: who sends it there means it all the
same. SIGHUP is ignored on purpose by whoever starts a command under nohup, so that stays.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def as_interrupt() -> Iterator[None]:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
