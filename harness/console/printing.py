"""Printing for somebody who may stop reading: a pipe that closes ends the printing, not the command."""

from __future__ import annotations

import os
import sys
from typing import IO

from rich.console import Console


class Terminal(Console):
    """A console of rich's that goes quiet where a pipe closes. The original raises SystemExit(1) there, which would be
    the exit code of a broken claim, and the end of a sweep whose lane prints."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        _nobody_reads(self.file)


def say(text: str, stream: IO[str] | None = None) -> None:
    """Print a line on stdout, or on ``stream``."""
    stream = stream or sys.stdout
    try:
        print(text, file=stream, flush=True)
    except BrokenPipeError:
        _nobody_reads(stream)


def _nobody_reads(stream: IO[str]) -> None:
    """What its buffer still holds, and all that follows, goes nowhere: an error at the interpreter's end, too, would
    change the exit code."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
