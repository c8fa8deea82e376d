"""The modules of a sink: those that it imports, directly or not, from its own directory and the folders below it.

The sink's directory is the first on the path of driver and executors, so ``import team.writer`` in a sink means
``team/writer.py`` next to it if that is there. Files that no import reaches do not belong to the sink, whatever lies in
its directory.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..sources import executed, parsed

NOT_OURS = frozenset({"pyspark", "py4j", "site-packages", "dist-packages"})
"""Folders whose code is none of the sink's, wherever they lie. The Python probe (sitecustomize.py) has the same."""

SEEN_BY_WHAT_THEY_ASK = frozenset({"kafka", "numpy", "pandas", "psycopg", "pyarrow", "redis"})
"""Libraries that come with the job's interpreter: a sweep sees their requests and their changes of files."""

Parsed = tuple[bytes, ast.Module]
"""A module's text and its syntax tree."""


def modules_of(path: Path) -> Mapping[str, Parsed]:
    """The sink's file and the modules of its directory that it imports, by their path relative to that directory.

    The first is the sink's own. Modules that cannot be read or parsed are left out. Raises OSError, SyntaxError, or
    ValueError (null bytes) where the sink's own file cannot be read or parsed.
    """
    root = path.parent
    found = {path.name: _parsed(path)}
    waiting = [path]
    while waiting:
        module = waiting.pop()
        for file in _imported(found[_name(module, root)][1], module, root):
            name = _name(file, root)
            if name in found:
                continue
            try:
                found[name] = _parsed(file)
            except (SyntaxError, ValueError, OSError):
                continue
            waiting.append(file)
    return found


def from_elsewhere(path: Path) -> list[str]:
    """Packages that the sink's modules import and that lie elsewhere: neither Python's own, nor Spark's, nor those of
    ``SEEN_BY_WHAT_THEY_ASK``. Raises as ``modules_of`` does."""
    root = path.parent
    named = {
        names[0]
        for file, (_, tree) in modules_of(path).items()
        for base, names in _names(tree, root / file, root)
        if base == root and not any(_files(root, names[:1], root)) and not any((root / names[0]).glob("**/*.py"))
    }
    return sorted(named - sys.stdlib_module_names - NOT_OURS - SEEN_BY_WHAT_THEY_ASK)


def module_name(file: str) -> str:
    """The dotted name of a module by its path: ``team/writer.py`` is ``team.writer``."""
    parts = file.removesuffix(".py").split("/")
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def _name(file: Path, root: Path) -> str:
    return file.relative_to(root).as_posix()


def _parsed(path: Path) -> Parsed:
    source = path.read_bytes()
    return source, parsed(source, filename=str(path))


def _imported(tree: ast.Module, path: Path, root: Path) -> Iterator[Path]:
    """The files below ``root`` that importing what ``tree`` imports anywhere would execute."""
    for base, names in _names(tree, path, root):
        yield from _files(base, names, root)


def _names(tree: ast.Module, path: Path, root: Path) -> Iterator[tuple[Path, list[str]]]:
    """The directory from which each import of ``tree`` starts, and the parts of the name that follow."""
    for node in executed(tree):
        match node:
            case ast.Import():
                yield from ((root, alias.name.split(".")) for alias in node.names)
            case ast.ImportFrom():
                base = root if node.level == 0 else _above(path, node.level)
                module = node.module.split(".") if node.module else []
                yield from ((base, [*module, alias.name]) for alias in node.names)
            case ast.Call(args=[ast.Constant(value=str(name)), *_]) if _is_import_call(node.func):
                yield root, name.split(".")


def _above(path: Path, level: int) -> Path:
    """The package from which a relative import with ``level`` dots starts."""
    return path.parents[min(level, len(path.parents)) - 1]


def _is_import_call(function: ast.expr) -> bool:
    """``importlib.import_module("team.writer")`` and ``__import__("team.writer")``."""
    return ast.unparse(function).rpartition(".")[2] in ("import_module", "__import__")


def _files(base: Path, names: list[str], root: Path) -> Iterator[Path]:
    """``import a.b.c`` executes a/__init__.py, a/b/__init__.py and a/b/c.py: those of them that there are."""
    if root not in (base, *base.parents) or (base == root and names[0] in NOT_OURS):
        return
    if (base / "__init__.py").is_file() and base != root:
        yield base / "__init__.py"
    for name in names:
        if not name.isidentifier():
            return
        base = base / name
        if (base / "__init__.py").is_file():
            yield base / "__init__.py"
        elif base.with_name(f"{name}.py").is_file():
            yield base.with_name(f"{name}.py")
            return
        elif not base.is_dir():
            return
