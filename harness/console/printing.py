"""Printing for somebody who may stop reading: a pipe that closes ends the printing, not the command."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import IO

from rich.console import Console


class OutputError(OSError):
    """A stream cannot be written to: its name, and why."""


class Terminal(Console):
    """A console of rich's that goes quiet where a pipe closes. The original raises SystemExit(1) there, which would be
    the exit code of a broken claim, and the end of a sweep whose lane prints."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        _nobody_reads(self.file)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Where all that is printed leaves its buffer. Raises OutputError."""
        with _named(self.file):
            super().__exit__(kind, error, trace)


def say(text: str, stream: IO[str] | None = None) -> None:
    """Print a line on stdout, or on ``stream``. Raises OutputError."""
    stream = stream or sys.stdout
    try:
        with _named(stream):
            print(text, file=stream, flush=True)
    except BrokenPipeError:
        _nobody_reads(stream)


@contextmanager
def _named(stream: IO[str]) -> Iterator[None]:
    """An error of a stream, but for a pipe that closes, is told with its name; all that follows goes nowhere."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        with suppress(io.UnsupportedOperation):
            _nobody_reads(stream)
        name = str(getattr(stream, "name", "the output")).strip("<>")
        raise OutputError(f"{name} cannot be written: {error.strerror or error}") from error


def _nobody_reads(stream: IO[str]) -> None:
    """What its buffer still holds, and all that follows, goes nowhere: an error at the interpreter's end, too, would
    change the exit code."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
