"""The one error of this package."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

from ..errors import Unavailable

MIRROR = "ONCEPROOF_MIRROR"
CACHE = "ONCEPROOF_CACHE"


class ArtifactError(Unavailable):
    """A jar or archive could not be had. The message is one line: what, which value, what to do."""


def of_storage(error: OSError, place: Path) -> ArtifactError:
    """What a failed write below ``place`` means for the user."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ArtifactError(
            f"the disk is full: {place} has {free_bytes(place)} bytes free; make room, or point {CACHE} to another disk"
        )
    return ArtifactError(f"cannot write to {place} ({error.strerror or error}); point {CACHE} to a writable directory")


def free_bytes(place: Path) -> int:
    """Bytes free for this user on the file system of ``place``, or of its nearest parent that exists."""
    while not place.exists() and place != place.parent:
        place = place.parent
    return shutil.disk_usage(place).free
