"""What of a sink's code no batch and no start ran: no point of a sweep lies there, and the certificate says so.

That is code for errors and conditions that did not come about, and code that runs once the query has ended.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from pathlib import Path

from ...faults.modules import modules_of
from .trace import Line

BY_THE_HARNESS = frozenset({"prepare", "read", "cleanup"})
"""Functions of a sink file that no job calls."""


def unswept(sink: Path, executed: Collection[Line]) -> list[str]:
    """Modules of which no line is among ``executed``, and the functions of the others of which none is.

    As ``team/writer.py`` and ``my_sink.py: Writer.write``.
    """
    found = []
    for file, (_, tree) in modules_of(sink).items():
        ran = {line.line for line in executed if line.file == file}
        if not ran:
            found.append(file)
            continue
        idle = [name for name, lines in _functions(tree) if not ran & lines]
        found += [f"{file}: {name}" for name in idle if not (file == sink.name and name in BY_THE_HARNESS)]
    return sorted(found)


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, set[int]]]:
    """Each function by its qualified name, with the lines of its own statements."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{prefix}{node.name}", set(_own_lines(node))
        inner = (
            f"{prefix}{node.name}."
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            else prefix
        )
        yield from _functions(node, inner)


def _own_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[int]:
    """The lines on which a statement of the function begins, without those of functions and classes inside it."""
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        if isinstance(node, ast.stmt):
            yield node.lineno
        waiting.extend(ast.iter_child_nodes(node))
