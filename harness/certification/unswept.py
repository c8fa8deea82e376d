"""What of a sink's code no batch and no start ran: no point of a sweep lies there, and the certificate says so.

That is code for errors and conditions that did not come about, and code that runs once the query has ended.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from ...faults.modules import modules_of
from ...faults.statements import last_line
from .trace import Line

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

BY_THE_HARNESS = frozenset({"prepare", "read", "cleanup"})
"""Functions of a sink file that no job calls."""


def unswept(sink: Path, executed: Collection[Line]) -> list[str]:
    """Modules of which no line is among ``executed``, the functions of the others of which none is, and the branches
    of the other functions.

    As ``team/writer.py``, ``my_sink.py: Writer.write`` and ``my_sink.py: Writer.write, lines 41-44``.
    """
    found = []
    for file, (_, tree) in modules_of(sink).items():
        ran = {line.line for line in executed if line.file == file}
        if not ran:
            found.append(file)
            continue
        for name, function in _functions(tree):
            if not (file == sink.name and name in BY_THE_HARNESS):
                found += [f"{file}: {name}{where}" for where in _idle(function.body, ran)]
    return found


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, _Function]]:
    """Each function by its qualified name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _FUNCTIONS):
            yield f"{prefix}{node.name}", node
        inner = f"{prefix}{node.name}." if isinstance(node, (*_FUNCTIONS, ast.ClassDef)) else prefix
        yield from _functions(node, inner)


def _idle(block: Sequence[ast.stmt], ran: set[int], where: str = "") -> Iterator[str]:
    """``where`` if no line of the block was executed, else ``, lines 41-44`` for each of its branches without one."""
    lines = {line for statement in block for line in _own_lines(statement)}
    if lines and not lines & ran:
        yield where
        return
    for branch in (branch for statement in block for branch in _branches(statement)):
        yield from _idle(branch, ran, _lines_of(branch))


def _branches(statement: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    """The blocks of statements right inside it, in their order; functions and classes have their own."""
    if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
        return
    for _, value in ast.iter_fields(statement):
        if not isinstance(value, list):
            continue
        if value and isinstance(value[0], ast.stmt):
            yield value
        else:
            cases = [part for part in value if isinstance(part, (ast.ExceptHandler, ast.match_case))]
            yield from (case.body for case in cases)


def _lines_of(block: Sequence[ast.stmt]) -> str:
    first, last = block[0].lineno, last_line(block[-1])
    return f", line {first}" if first == last else f", lines {first}-{last}"


def _own_lines(statement: ast.stmt) -> Iterator[int]:
    """The lines of a statement and of those inside it, without those of functions and classes."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)) or _is_silent(node):
            continue
        if isinstance(node, ast.stmt):
            last = node.lineno if any(_branches(node)) else last_line(node)
            yield from range(node.lineno, last + 1)
        waiting.extend(ast.iter_child_nodes(node))


def _is_silent(node: ast.AST) -> bool:
    """Whether the interpreter has no code for it: a declaration, or a constant by itself, as documentation is."""
    return isinstance(node, (ast.Global, ast.Nonlocal)) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )
