"""The kinds of fault that a sweep strikes with, one file each: every module here has a ``STRIKE``, a :class:`Strike`.

A new kind is a new file. Nothing else names those that follow from the two traces; a kind with a traced run of its own
(``longer``, ``larger``) is named where that run is begun and read.

>>> [strike.order for strike in strikes()][:2]
[10, 12]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache

from ....additions import declared_in
from ._declaration import Strike

__all__ = ["Strike", "strikes"]


@cache
def strikes() -> Sequence[Strike]:
    """All of them, in the order in which they are swept. Raises TypeError for a module that declares none."""
    found: list[Strike] = [strike for _, strike in declared_in(sys.modules[__name__], "STRIKE")]
    return tuple(sorted(found, key=lambda strike: strike.order))
