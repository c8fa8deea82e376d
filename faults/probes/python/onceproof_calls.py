"""Calls of functions that a plan names: reported before they are called, and before their callers have the result.

Standard library only, CPython 3.9 to 3.13. A function is wrapped where its dotted name leads, as soon as its module has
been imported: in the module, or in the class, and then for all classes that inherit it. A name that was bound to it
before, in its own package, calls it unseen.
"""

from __future__ import annotations

import _thread
import sys

TYPE_CHECKING = False  # the interpreter starts quicker without the module typing
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import ModuleType
    from typing import Any

    Report = Callable[[Mapping[str, Any]], None]

COROUTINE = 0x80
"""CO_COROUTINE: code of an ``async def``."""


class Calls:
    """A finder that has the real ones find a module, and wraps what is named in it once it has been executed.

    ``reach`` reports a point and raises what the answer orders; ``complain`` says what could not be wrapped, and why.
    """

    def __init__(self, names: Iterable[str], reach: Report, complain: Callable[[str], None]) -> None:
        self._open = set(names)
        self._reach = reach
        self._complain = complain
        self._inside = _thread._local()
        self._finding: set[str] = set()

    def watch(self) -> None:
        sys.meta_path.insert(0, self)
        for module in list(self._modules() & sys.modules.keys()):
            self._imported(sys.modules[module])

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """That of the other finders, with a loader that calls back."""
        if name not in self._modules() or name in self._finding:
            return None
        from importlib.util import find_spec

        self._finding.add(name)
        try:
            spec = find_spec(name)
        finally:
            self._finding.discard(name)
        if spec is not None and hasattr(spec.loader, "exec_module") and not isinstance(spec.loader, type):
            self._call_back(spec.loader)
        return spec

    def _call_back(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            self._imported(module)

        loader.exec_module = exec_module

    def _modules(self) -> set[str]:
        """What the open names may be in: ``a`` and ``a.b`` of ``a.b.c``."""
        parts = [name.split(".") for name in self._open]
        return {".".join(part[:length]) for part in parts for length in range(1, len(part))}

    def _imported(self, module: ModuleType) -> None:
        for name in sorted(self._open):
            if name.startswith(module.__name__ + "."):
                self._look(module, name)

    def _look(self, module: ModuleType, name: str) -> None:
        """Wrap the function, unless the name leads on into a module that is yet to be imported."""
        *way, last = name[len(module.__name__) + 1 :].split(".")
        owner: Any = module
        for part in way:
            found = getattr(owner, part, None)
            if found is None and owner is module and self._is_package(module):
                return
            owner = found
        if not callable(getattr(owner, last, None)):
            if not (owner is module and self._is_package(module)):
                self._give_up(name, "there is no such function")
            return
        try:
            setattr(owner, last, self._wrapped(_found(owner, last), name))
        except (AttributeError, TypeError) as error:
            self._give_up(name, str(error))
        self._open.discard(name)

    @staticmethod
    def _is_package(module: ModuleType) -> bool:
        return hasattr(module, "__path__")

    def _give_up(self, name: str, why: str) -> None:
        self._open.discard(name)
        self._complain(f"calls of {name} are not reported: {why}")

    def _wrapped(self, found: Any, name: str) -> Any:
        """What does the same, and reports: of a static method or a class method one again."""
        if isinstance(found, (staticmethod, classmethod)):
            return type(found)(self._wrapped(found.__func__, name))
        from functools import wraps

        if getattr(getattr(found, "__code__", None), "co_flags", 0) & COROUTINE:

            @wraps(found)
            async def awaited(*arguments: Any, **named: Any) -> Any:
                self._tell(name, "before")
                result = await found(*arguments, **named)
                self._tell(name, "after")
                return result

            return awaited

        @wraps(found)
        def called(*arguments: Any, **named: Any) -> Any:
            self._tell(name, "before")
            result = found(*arguments, **named)
            self._tell(name, "after")
            return result

        return called

    def _tell(self, name: str, edge: str) -> None:
        """What the report itself calls is none of the job's."""
        if getattr(self._inside, "telling", False):
            return
        self._inside.telling = True
        try:
            self._reach({"phase": "call", "edge": edge, "function": name})
        finally:
            self._inside.telling = False


def _found(owner: Any, name: str) -> Any:
    """The attribute as it is stored: a static method or a class method as such."""
    for one in getattr(owner, "__mro__", (owner,)):
        if name in vars(one):
            return vars(one)[name]
    return getattr(owner, name)
