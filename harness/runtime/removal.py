"""Directories are removed for good: confirmed gone, and again if something brought them back.

Standard library only and without relative imports: the guardian loads this file by its path.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time

SECONDS = 2.0
"""How long something may bring a directory back before it counts as not removable."""
POLL = 0.02
"""Seconds between two attempts."""


class NotRemoved(Exception):
    """A directory is still there, or there again; the message names what is in it."""


def remove_tree(path: str, deadline_seconds: float = SECONDS) -> None:
    """Remove a directory; returns once it is confirmed gone. No error if there is none. Raises NotRemoved.

    It gets another name first: what still runs must not make anything new in it meanwhile. Who makes missing parents
    along with a file brings it back all the same: it is removed until nobody does.
    """
    aside = f"{path}.removed"
    deadline = time.monotonic() + deadline_seconds
    while True:
        with contextlib.suppress(OSError):
            os.rename(path, aside)
        for each in (aside, path):
            shutil.rmtree(each, ignore_errors=True)
        left = [each for each in (aside, path) if os.path.lexists(each)]
        if not left:
            return
        if time.monotonic() > deadline:
            raise NotRemoved(f"{_deepest(left[0])} could not be removed: remove {left[0]} by hand")
        time.sleep(POLL)


def _deepest(path: str) -> str:
    """The first path below that holds nothing else: what stands in the way."""
    for place, folders, names in os.walk(path):
        if names or not folders:
            return os.path.join(place, *names[:1])
    return path
