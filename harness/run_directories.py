"""Run directories: one for each trial, never written over."""

from __future__ import annotations

import errno
import secrets
import shutil
import time
from pathlib import Path

from .environments.base import Unavailable
from .errors import UsageError

NEEDED = 100 * 1024 * 1024
"""Bytes that must be free before a trial starts."""

FIX = "name another with --run-directory or --runs"

RUNS = Path(".onceproof") / "runs"

LOGS = "logs"
"""The folder of a run directory for the output of processes."""


def new_run_directory(runs: Path, chosen: Path | None = None) -> Path:
    """Make an empty run directory: ``chosen``, or a new one under ``runs``.

    Raises UsageError where it cannot be made or is not empty, Unavailable where its disk is full.
    """
    directory = chosen or runs / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        what = "is not empty" if directory.is_dir() else "is a file"
        raise UsageError(f"run directory {directory} {what}: name a new one with --run-directory")
    make_writable(directory)
    (directory / LOGS).mkdir(exist_ok=True)
    return directory.resolve()


def make_writable(directory: Path) -> None:
    """Make a directory and write to it once. Raises UsageError or Unavailable."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe = directory / f".{secrets.token_hex(4)}"
        probe.write_bytes(b"onceproof")
        probe.unlink()
        free = shutil.disk_usage(directory).free
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise Unavailable(f"no space left on the disk of {directory}: free some, or {FIX}") from error
        raise UsageError(f"run directory {directory} cannot be written ({error.strerror}): {FIX}") from error
    if free < NEEDED:
        raise Unavailable(
            f"the disk of {directory} has {free // 2**20} MiB free, a trial needs {NEEDED // 2**20} MiB: "
            f"free some, or {FIX}"
        )
