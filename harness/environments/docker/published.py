"""Copies of the harness's files in the directory that all containers share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from ...runtime.leftovers import disk_errors
from ..base import Unavailable

MOST_BYTES = 64 << 20
MOST_FILES = 5000
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "node_modules", "venv")


def copy_directory(directory: Path, place: Path) -> None:
    """Hidden files and virtual environments are left out. Raises Unavailable if there is more than MOST_BYTES or
    MOST_FILES."""
    _check_size(directory)
    with disk_errors():
        shutil.copytree(directory, place, ignore=_left_out)


def _left_out(directory: str, names: list[str]) -> set[str]:
    environments = [name for name in names if os.path.exists(os.path.join(directory, name, "pyvenv.cfg"))]
    sockets = [name for name in names if not _copyable(os.path.join(directory, name))]
    return {*LEFT_OUT(directory, names), *environments, *sockets}


def _copyable(path: str) -> bool:
    return os.path.isfile(path) or os.path.isdir(path)


def _check_size(directory: Path) -> None:
    total = files = 0
    for place, folders, names in os.walk(directory):
        left_out = _left_out(place, folders + names)
        folders[:] = [name for name in folders if name not in left_out]
        kept = [name for name in names if name not in left_out]
        files += len(kept)
        total += _size(os.path.join(place, name) for name in kept)
        if total > MOST_BYTES or files > MOST_FILES:
            raise Unavailable(
                f"{directory} is too large to be copied to containers (over {MOST_BYTES >> 20} MiB or {MOST_FILES} "
                "files): put the sink into a directory of its own, together with what it imports"
            )


def _size(paths: Iterable[str]) -> int:
    return sum(os.path.getsize(path) for path in paths)
