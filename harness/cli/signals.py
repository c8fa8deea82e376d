"""SIGTERM and SIGHUP end a command as Ctrl-C does: everything that it started is ended first.

A shell without job control starts a command in the background with SIGINT ignored: who sends it there means it all the
same. SIGHUP is ignored on purpose by whoever starts a command under nohup, so that stays.

A signal that arrives while a thread's condition is being entered is put off for a moment: raised there, after the lock
was acquired and before the ``with`` knows of it, KeyboardInterrupt would leave it locked for ever, and the next one who
waits would hang (CPython, bpo-29988).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN = 0.01
"""Seconds until a signal that came at the wrong moment is looked at again."""


@contextmanager
def as_interrupt() -> Iterator[None]:
    def interrupt(number: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_code is threading.Condition.__enter__.__code__:
            signal.setitimer(signal.ITIMER_REAL, AGAIN)
            return
        raise KeyboardInterrupt

    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGALRM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
