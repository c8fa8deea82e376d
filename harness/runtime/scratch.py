"""A directory for a piece of work that has no environment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .guardian import Guardian
from .leftovers import state_directory


@contextmanager
def scratch_directory(mark: str) -> Iterator[Path]:
    """A new directory that is removed at the end, also if this process is killed before. ``mark`` says for whom.

    Raises Unavailable.
    """
    guardian = Guardian.start(mark)
    try:
        yield state_directory(guardian)
    finally:
        guardian.close()
