"""The kinds of target, one file each: every module here has a ``TARGET``, a :class:`Target`.

A sink asks for them by the names of these modules (SERVICES). A new kind is a new file: nothing else names them.

>>> {"directory", "kafka", "postgres"} <= set(targets())
True
>>> services_of(["directory", "postgres"])
{'postgres'}
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from functools import cache

from ...additions import declared_in
from ._declaration import SIDES, Endpoint, Fields, Location, Target, check_target

__all__ = ["SIDES", "Endpoint", "Fields", "Location", "Target", "services_of", "targets"]


@cache
def targets() -> Mapping[str, Target]:
    """Every kind by its name, in the order of the names. Raises TypeError for one that cannot be used."""
    return {name: check_target(name, target) for name, target in declared_in(sys.modules[__name__], "TARGET")}


def services_of(names: Collection[str]) -> set[str]:
    """What the environment has to provide for these kinds. Raises KeyError."""
    return {service for name in names if (service := targets()[name].service)}
