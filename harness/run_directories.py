"""Run directories: one for each trial, never written over."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from .environments.base import Unavailable
from .errors import UsageError

NEEDED = 100 * 1024 * 1024
"""Bytes that must be free before a trial starts."""

OTHER_DIRECTORY = "name another with --run-directory or --runs"
"""What helps where a run directory cannot be had."""

RUNS = Path(".onceproof") / "runs"

LOGS = "logs"
"""The folder of a run directory for the output of processes."""


@contextmanager
def new_run_directory(
    runs: Path, chosen: Path | None = None, fix: str = OTHER_DIRECTORY, *, no_evidence: Collection[str] = ()
) -> Iterator[Path]:
    """An empty run directory, made for what is kept in it: ``chosen``, or a new one under ``runs``.

    Where an error comes before anything is kept there, but for files called as ``no_evidence``, what was made is
    removed: the same directory may be named again. ``fix`` says what helps where it cannot be made. Raises UsageError
    where that is so, it is not empty, or its path is no text, Unavailable where its disk is full.
    """
    directory = chosen or runs / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
    if not is_text(str(directory.resolve())):
        raise UsageError(f"run directory {str(directory.resolve())!r} is no UTF-8 text: {fix}")
    check_unused(directory)
    made = [place for place in (directory, *directory.parents) if not place.exists()]
    try:
        make_writable(directory, fix)
        (directory / LOGS).mkdir(exist_ok=True)
        yield directory.resolve()
    except BaseException:
        _remove_unused(directory, made, no_evidence)
        raise


def is_text(value: str) -> bool:
    """Whether documents can hold it: bytes of a path or an argument that are no UTF-8 come as lone surrogates.

    >>> is_text("caf\u00e9"), is_text(os.fsdecode(b"caf\\xe9"))
    (True, False)
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_unused(directory: Path) -> None:
    """Raises UsageError for what cannot be a new run directory, since something is there."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        what = "is not empty" if directory.is_dir() else "is a file"
        raise UsageError(f"run directory {directory} {what}: name a new one with --run-directory")


def _remove_unused(directory: Path, made: Sequence[Path], no_evidence: Collection[str]) -> None:
    """Remove what is in a run directory without evidence, and of the folders ``made`` those that are empty then."""
    found = [(Path(folder), names) for folder, _, names in os.walk(directory, topdown=False)]
    if any(name not in no_evidence for _, names in found for name in names):
        return
    for file in (folder / name for folder, names in found for name in names):
        file.unlink(missing_ok=True)
    for folder in (*(folder for folder, _ in found if folder != directory), *made):
        with suppress(OSError):  # something is in it by now, or it is not there
            folder.rmdir()


def make_writable(directory: Path, fix: str = OTHER_DIRECTORY) -> None:
    """Make a directory and write to it once. Raises UsageError or Unavailable."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe = directory / f".{secrets.token_hex(4)}"
        probe.write_bytes(b"onceproof")
        probe.unlink()
        free = shutil.disk_usage(directory).free
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise Unavailable(f"no space left on the disk of {directory}: free some, or {fix}") from error
        raise UsageError(f"run directory {directory} cannot be written ({error.strerror}): {fix}") from error
    if free < NEEDED:
        raise Unavailable(
            f"the disk of {directory} has {free // 2**20} MiB free, a trial needs {NEEDED // 2**20} MiB: "
            f"free some, or {fix}"
        )
