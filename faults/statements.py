"""Statements of a sink's modules, read from their text, of which the tree of each file is kept until it changes."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..sources import parsed
from .modules import module_name

OF_EVENT_LOOPS = frozenset(
    f"asyncio.{name}"
    for name in ("Queue", "LifoQueue", "PriorityQueue", "Lock", "Semaphore", "BoundedSemaphore", "Condition")
)
"""Classes whose waiting either ends in what it waits for, or is cancelled, and never both."""

With = ast.With | ast.AsyncWith
Located = ast.stmt | ast.excepthandler | ast.match_case


def calls_at(path: Path, line: int) -> bool:
    """Whether the statement that is executed at ``line`` calls anything; entering and leaving ``with`` is a call.

    Of a compound statement that is what stands before its colon. What takes from a queue of its event loop, as
    ``await queue.get()`` and ``await asyncio.wait_for(queue.get(), 1)`` do, is no call here: it fails or it takes, and
    never both. So it is with ``put()`` and ``acquire()`` of what the module makes of asyncio's classes.
    ``future.get(timeout=1)`` is one: what it waits for may be done all the same. Raises OSError or SyntaxError.
    """
    module = module_at(path, path.parent)
    statement = statement_at(module.tree, line)
    if statement is None or isinstance(statement, With):
        return statement is not None
    return any(_calls(part, module) for part in executed_of(statement))


def _calls(node: ast.AST, module: Module) -> bool:
    match node:
        case ast.Lambda():
            return False
        case ast.Await(value):
            return not takes(value, module)
        case ast.Call():
            return True
    return any(_calls(child, module) for child in ast.iter_child_nodes(node))


def takes(node: ast.AST, module: Module) -> bool:
    """Whether what is awaited is ``get()`` of a queue, by itself or under ``wait_for``: others name what they get."""
    match node:
        case ast.Call(func=ast.Attribute(ast.Name() | ast.Attribute(), "get"), args=[], keywords=[]):
            return True
        case ast.Call(func=ast.Attribute(ast.Name() | ast.Attribute() as waited, "put" | "acquire")):
            return dotted_name(waited).rpartition(".")[2] in given_names(module, OF_EVENT_LOOPS)
        case ast.Call(func=ast.Attribute(attr="wait_for") | ast.Name("wait_for"), args=[taken, *_]):
            return takes(taken, module)
    return False


def begins_at(path: Path, line: int) -> bool:
    """Whether a statement begins at ``line``, rather than goes on there. Raises OSError or SyntaxError."""
    statement = statement_at(module_at(path, path.parent).tree, line)
    return statement is not None and statement.lineno == line


def leaves_at(path: Path, line: int, nth: int) -> bool:
    """Whether the nth execution of ``line`` leaves a ``with``, which the one before has entered. Raises OSError or
    SyntaxError."""
    return nth % 2 == 0 and isinstance(statement_at(module_at(path, path.parent).tree, line), With)


def statement_at(tree: ast.Module, line: int) -> ast.stmt | None:
    """The innermost statement to which ``line`` belongs."""
    found: ast.stmt | None = None
    for node in containing(tree, line):
        if isinstance(node, ast.stmt):
            found = node
    return found


@dataclass(frozen=True)
class Module:
    """A parsed module: the dotted names of what it imports and defines, and the expressions it gives names to.

    ``own`` is its own dotted name, from ``root``; ``defined`` are its functions and classes, wherever they stand in it.
    """

    root: Path
    own: str
    tree: ast.Module
    names: Mapping[str, str]
    assigned: Mapping[str, ast.expr]
    defined: frozenset[str]


Place = tuple[Module, str]
"""A module, and a name in it."""


def module_at(path: Path, root: Path) -> Module:
    status = path.stat()
    return _read(path, root, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=64)
def _read(path: Path, root: Path, changed: int, size: int) -> Module:
    tree = parsed(path.read_bytes(), filename=str(path))
    file = path.relative_to(root).as_posix()
    known, assigned = dict(_known_names(tree, file)), {name: value for name, value in bound(tree).items() if value}
    return Module(root, module_name(file), tree, known, assigned, frozenset(_defined(tree)))


DISPLAYS: Mapping[type[ast.expr], str] = {
    ast.List: "list", ast.ListComp: "list", ast.Dict: "dict", ast.DictComp: "dict", ast.Set: "set", ast.SetComp: "set"
}  # fmt: skip
"""What brackets make."""


def given_names(module: Module, classes: Collection[str]) -> Iterator[str]:
    """The names, without what stands before their dots, that a module gives to what it makes of these classes, be it by
    ``[]`` or ``{}``."""
    for node in ast.walk(module.tree):
        match node:
            case ast.Assign(targets=[target], value=value):
                given = [*_pairs(target, value)]
            case ast.AnnAssign(target=target, annotation=made):
                given = [(target, made)]
            case ast.arg(arg=name, annotation=ast.expr() as made):
                given = [(ast.Name(name), made)]
            case _:
                continue
        for target, made in given:
            made = made.func if isinstance(made, ast.Call) else made
            made = made.value if isinstance(made, ast.Subscript) else made
            if (DISPLAYS.get(type(made)) or meant_by(dotted_name(made), module)) in classes:
                yield dotted_name(target).rpartition(".")[2]


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What an assignment gives to what: ``a, b = 1, 2`` has two pairs."""
    match target, value:
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            for one, given in zip(targets, values, strict=True):
                yield from _pairs(one, given)
        case _:
            yield target, value


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def bound(tree: ast.Module) -> dict[str, ast.expr | None]:
    """Each name that the module defines, with the expression that it is given at last; None where that is more than a
    plain assignment: a function, an import, a branch, a loop, ``+=``.

    >>> found = bound(ast.parse("A: int = 1; B, C = 2, 3; C += 1"))
    >>> {name: value and ast.unparse(value) for name, value in found.items()}
    {'A': '1', 'B': '2', 'C': None}
    """
    found: dict[str, ast.expr | None] = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    found.update(_given(target, value))
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                found |= {name: value} if value else {}
            case _:
                found.update(dict.fromkeys(_names_bound(node)))
    return found


def _given(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr | None]]:
    """The names of an assignment's target: ``A, B = 1, 2`` has two."""
    for one, given in _pairs(target, value):
        if isinstance(one, ast.Name):
            yield one.id, given
        else:
            yield from ((name, None) for name in _names_bound(one))


def _names_bound(node: ast.AST) -> Iterator[str]:
    """What a statement binds, but for what is inside of functions and classes."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name, asname=other):
            yield other or name.partition(".")[0]
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.Lambda():
            pass
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _names_bound(child)


def _known_names(tree: ast.Module, file: str) -> Iterator[tuple[str, str]]:
    """Each name that the module imports anywhere or defines as a class, with the dotted name that it stands for."""
    own = module_name(file)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (first, first)
        elif isinstance(node, ast.ImportFrom):
            module = ".".join(filter(None, [_package(file, node.level), node.module]))
            yield from ((alias.asname or alias.name, f"{module}.{alias.name}") for alias in node.names)
    yield from ((node.name, f"{own}.{node.name}") for node in tree.body if isinstance(node, ast.ClassDef))


def _package(file: str, level: int) -> str:
    """The package from which a relative import with ``level`` dots starts; empty for an absolute one."""
    folders = file.split("/")[:-1]
    return ".".join(folders[: len(folders) - level + 1]) if level else ""


def containing(tree: ast.Module, line: int) -> Iterator[ast.AST]:
    """The nodes from the module down to the innermost whose lines ``line`` is among; of siblings the last."""
    node: ast.AST | None = tree
    while node is not None:
        yield node
        inside = [
            child
            for child in ast.iter_child_nodes(node)
            if isinstance(child, Located) and first_line(child) <= line <= last_line(child)
        ]
        node = inside[-1] if inside else None


def first_line(node: Located) -> int:
    if isinstance(node, ast.match_case):
        return node.pattern.lineno
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return node.lineno


def last_line(node: Located) -> int:
    if isinstance(node, ast.match_case):
        return last_line(node.body[-1])
    return node.end_lineno or node.lineno


def place_of(dotted: str, root: Path) -> Place | None:
    """The module below ``root`` to which a dotted name leads, and what remains of the name there."""
    parts = dotted.split(".")
    for length in range(len(parts) - 1, 0, -1):
        base = root.joinpath(*parts[:length])
        for path in (base / "__init__.py", base.with_name(f"{base.name}.py")):
            if path.is_file():
                try:
                    return module_at(path, root), ".".join(parts[length:])
                except (OSError, SyntaxError, ValueError):
                    return None
    return None


def meant_by(name: str, module: Module) -> str:
    """The dotted name for which a name stands by the module's imports; empty if by none."""
    first, dot, rest = name.partition(".")
    return module.names[first] + dot + rest if first in module.names else ""


def dotted_name(expression: ast.expr) -> str:
    """``psycopg.OperationalError``; empty for anything but names and attributes."""
    match expression:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attribute):
            inner = dotted_name(value)
            return f"{inner}.{attribute}" if inner else ""
    return ""


def executed_of(statement: ast.stmt) -> Iterable[ast.AST]:
    """What runs when the statement's own line does: of a compound one, what stands before its colon."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return statement.decorator_list
        case ast.If(test=test) | ast.While(test=test):
            return [test]
        case ast.For(iter=iterated) | ast.AsyncFor(iter=iterated):
            return [iterated]
        case ast.Match(subject=subject):
            return [subject]
        case ast.Try() | ast.TryStar():
            return []
    return [statement]


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of an expression that are executed with it: the body of a lambda is not."""
    yield node
    if not isinstance(node, ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from walk(child)
