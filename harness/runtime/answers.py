"""What a program answers that is run for a moment."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple


class Answer(NamedTuple):
    """``said`` is what it printed, ``complaint`` what it printed as an error."""

    code: int
    said: str
    complaint: str


def answer(command: Sequence[str], seconds: float, environment: Mapping[str, str] | None = None) -> Answer:
    """Run a program that ends by itself within so many seconds; else it is ended with all that it started, which holds
    its output open, too. Raises OSError where it cannot be started, subprocess.TimeoutExpired where it did not end.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment,
        start_new_session=True,
    )
    with process:
        try:
            said, complaint = process.communicate(timeout=seconds)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return Answer(process.returncode, said, complaint)
