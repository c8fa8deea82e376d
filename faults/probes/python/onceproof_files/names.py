"""The directories whose files are watched."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase

TYPE_CHECKING = False  # the program starts quicker without the module typing
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Names:
    """The directories that are watched, and what their files are called: ``target/part-0.parquet``."""

    def __init__(self, roots: Mapping[str, str], left_out: Sequence[str]) -> None:
        self._roots = {
            path.rstrip("/"): name for name, given in roots.items() for path in (given, os.path.realpath(given))
        }
        self._left_out = tuple(left_out)

    @property
    def for_all(self) -> str:
        """What stands for all of them: ``target``, if there is one."""
        found = list(self._roots.values())
        return "target" if "target" in found else found[0]

    def share_a_file_system_with(self, path: str) -> bool:
        device = os.stat(path).st_dev
        return any(os.stat(root).st_dev == device for root in self._roots if os.path.exists(root))

    def of(self, path: str) -> str | None:
        """None for a file that is not watched."""
        found = self._below(os.path.normpath(path)) if path else None
        if found is None and path.startswith("/"):
            directory, name = os.path.split(os.path.normpath(path))
            found = self._below(os.path.join(os.path.realpath(directory), name))
        return None if found is None or any(fnmatchcase(found, pattern) for pattern in self._left_out) else found

    def _below(self, path: str) -> str | None:
        for root, name in self._roots.items():
            if path == root or path.startswith(root + "/"):
                return name + path[len(root) :]
        return None
