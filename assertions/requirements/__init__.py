"""The kinds of evidence, one file each: every module here has ``check(struck) -> Found``.

An action declares what it must leave behind by the names of these modules (:mod:`onceproof.requirements`). The
docstring of a check states its property. A module with ``REPLAY = True`` asks for something to be started or
attempted again that was ended. A new kind is a new file: nothing else names them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from types import ModuleType

from ...additions import names_in
from ..traces import Found, Struck

Check = Callable[[Struck], Found]


def kinds() -> Sequence[str]:
    """The names of all kinds."""
    return names_in(sys.modules[__name__])


def check_named(kind: str) -> Check:
    """The check of one kind. Raises ValueError, one line, for a kind that does not exist."""
    check: Check = _module(kind).check
    return check


def is_replay(kind: str) -> bool:
    """Whether something must be started or attempted again. Raises ValueError for a kind that does not exist."""
    return bool(getattr(_module(kind), "REPLAY", False))


@cache
def _module(kind: str) -> ModuleType:
    if kind not in kinds():
        raise ValueError(f"no requirement is of the kind {kind!r}: there are {', '.join(kinds())}")
    return import_module(f"{__name__}.{kind}")
