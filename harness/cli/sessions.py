"""The session of a command: a signal ends it, and how its end goes changes no verdict."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ..console.printing import say
from ..environment_options import EnvironmentOptions
from ..errors import one_line
from ..session import Session
from .signals import as_interrupt


def told(line: str) -> None:
    """What takes time is told on stderr: stdout is the document's."""
    say(line, sys.stderr)


@contextmanager
def opened(options: EnvironmentOptions, at_once: int | None = None) -> Iterator[Session]:
    """A session for as long as a command needs it. An error of its end is a warning: what was found out stands."""
    with as_interrupt():
        session = Session(options, at_once)
        try:
            yield session
        finally:
            _close(session)


def _close(session: Session) -> None:
    try:
        session.close()
    except Exception as error:
        what = f"{type(error).__name__}: {one_line(error)}"
        say(f"onceproof: warning: the environment did not come to an orderly end: {what}", sys.stderr)
