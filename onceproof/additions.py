"""What is added by adding a file: packages of which each module declares one thing, and which nothing else lists."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any


def names_in(package: ModuleType) -> list[str]:
    """The names of a package's modules, in their order; those that begin with an underscore declare nothing."""
    return sorted(module.name for module in pkgutil.iter_modules(package.__path__) if not module.name.startswith("_"))


def modules_in(package: ModuleType) -> Iterator[tuple[str, ModuleType]]:
    """Those modules by their names."""
    for name in names_in(package):
        yield name, import_module(f"{package.__name__}.{name}")


def declared_in(package: ModuleType, attribute: str) -> Iterator[tuple[str, Any]]:
    """What each of them declares under ``attribute``, by its name. Raises TypeError for one that does not."""
    for name, module in modules_in(package):
        if not hasattr(module, attribute):
            raise TypeError(f"{module.__name__} declares no {attribute}")
        yield name, getattr(module, attribute)
