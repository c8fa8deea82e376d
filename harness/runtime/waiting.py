"""The one way to wait: for a condition, with a deadline and a message of what was awaited and what was seen last."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar, cast

T = TypeVar("T")

POLL = 0.05
"""Seconds between two looks at a condition."""


class WaitTimeout(Exception):
    """A condition did not come true in time; names the condition, the deadline and what was seen last."""


@dataclass(frozen=True)
class NotYet:
    """A condition's answer while it does not hold, with what was seen: ``NotYet("2 of 3 brokers")``."""

    seen: str

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return self.seen


def wait_for(
    condition: Callable[[], T | NotYet | Literal[False] | None],
    deadline_seconds: float,
    what: str,
    poll: float = POLL,
    clock: Callable[[], float] = time.monotonic,
) -> T:
    """Ask ``condition`` until it answers something true, and return that; ``clock`` says how many seconds count.

    The condition is asked at least once, and once more at the deadline. An exception of the condition ends the wait:
    raise one where waiting longer is pointless. Raises WaitTimeout.

    >>> wait_for(lambda: 7, 1.0, "seven")
    7
    """
    deadline = clock() + deadline_seconds
    while True:
        seen = condition()
        if seen:
            return cast(T, seen)
        left = deadline - clock()
        if left <= 0:
            last = f"; last seen: {seen}" if isinstance(seen, NotYet) else ""
            raise WaitTimeout(f"waited {deadline_seconds:g} s for {what}{last}")
        time.sleep(min(poll, left))
