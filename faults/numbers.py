"""The numbers in a sink's text: a limit of its own, such as the tries after which it gives up, is one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from .statements import module_at

MILLISECONDS = ("_ms", ".ms", "_millis")
NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")


def numbers_in(path: Path) -> frozenset[float]:
    """Each number that a file names, as a text too; those given to a name that says so in milliseconds are in seconds.
    And how many entries each list of numbers has: one may be waited for after another.

    ``PATIENCE_MS = 30_000``, ``linger_ms=5``, ``{"delivery.timeout.ms": 30_000}``, ``os.environ.get("TRIES", "5")``,
    ``WAITS = (0.1, 0.2, 0.4)``. Raises OSError or SyntaxError.
    """
    return frozenset(_numbers(module_at(path, path.parent).tree, ""))


def _numbers(node: ast.AST, name: str) -> Iterator[float]:
    """``name``: what the node is given to."""
    match node:
        case ast.Constant(bool()):
            return
        case ast.Constant(int() | float() as value):
            yield value / 1000 if name.lower().endswith(MILLISECONDS) else value
        case ast.Constant(str() as text) if NUMBER.fullmatch(text):
            yield from _numbers(ast.Constant(float(text)), name)
        case ast.Tuple(elts=entries) | ast.List(elts=entries) if all(map(_is_number, entries)):
            yield len(entries)
            for entry in entries:
                yield from _numbers(entry, name)
        case ast.keyword(arg=given, value=value):
            yield from _numbers(value, given or "")
        case ast.Assign(targets=[ast.Name(id=given)], value=value):
            yield from _numbers(value, given)
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                yield from _numbers(value, str(key.value) if isinstance(key, ast.Constant) else name)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _numbers(child, name)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)
