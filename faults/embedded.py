"""SQLite, which lies in the process itself: no answer is lost on the way, so what a statement reports is what it did.

A statement that fails is undone, or its transaction is (https://sqlite.org/lang_transaction.html, "Response To Errors
Within A Transaction"). Of a COMMIT that fails that is not known: the disk may have failed behind it.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from .statements import Module, With, executed_of, module_at, statement_at, walk

DATABASE = "sqlite3"
METHODS = frozenset({"execute", "executemany"})
"""Not executescript, which commits first."""
CHANGES = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE"})
"""Before these sqlite3 begins a transaction by itself, unless it is in autocommit."""
BEGIN = "BEGIN"
ENDS = frozenset({"COMMIT", "END"})
UNKNOWN = ""
"""Of a statement that is a function's parameter. Where no text of the module ends a transaction, neither does that."""
ANY = frozenset({"Exception", "BaseException"})


def undone_at(path: Path, line: int, error: str, root: Path) -> bool:
    """Whether what the statement at ``line`` calls has come to nothing if it raises ``error``, the dotted name of a
    class: it begins a transaction of SQLite's, or changes something in one. Raises OSError or SyntaxError."""
    module = module_at(path, root)
    statement = statement_at(module.tree, line)
    if statement is None or isinstance(statement, With) or not _is_of_the_database(error, module):
        return False
    calls = [node for part in executed_of(statement) for node in walk(part) if isinstance(node, ast.Call)]
    executed = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr in METHODS]
    words = {_first_word(call, module) for call in executed}
    inside = CHANGES | {BEGIN} if _in_transactions(module) else {BEGIN}
    if inside > {BEGIN} and not ENDS & _words(module):
        words.discard(UNKNOWN)
    return bool(executed) and words <= inside and not any(map(_may_commit, set(calls) - set(executed)))


def _is_of_the_database(error: str, module: Module) -> bool:
    """An error of any class is, in a module that knows nothing else with such methods."""
    packages = {name.partition(".")[0] for name in module.names.values()}
    if error in ANY:
        return DATABASE in packages and packages <= {*sys.stdlib_module_names, "pyspark"}
    return error.startswith(f"{DATABASE}.")


def _first_word(call: ast.Call, module: Module) -> str:
    """Of the statement that is executed, as far as it can be told."""
    text = next(iter(call.args), None)
    if isinstance(text, ast.Name):
        text = module.assigned.get(text.id)
    if isinstance(text, ast.JoinedStr):
        text = next(iter(text.values), None)
    if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
        return UNKNOWN
    return _first_of(text.value)


def _may_commit(call: ast.Call) -> bool:
    """A function may, of the sink's own or not; a method by its name."""
    return not isinstance(call.func, ast.Attribute) or call.func.attr in ("commit", "executescript")


def _in_transactions(module: Module) -> bool:
    """Whether changes are: connections are not in autocommit, or it begins them itself."""
    return BEGIN in _words(module) or not any(map(_is_autocommit, ast.walk(module.tree)))


def _words(module: Module) -> set[str]:
    """With which its texts begin."""
    constants = (node.value for node in ast.walk(module.tree) if isinstance(node, ast.Constant))
    return {_first_of(text) for text in constants if isinstance(text, str)}


def _first_of(text: str) -> str:
    return next(iter(text.upper().split()), "")


def _is_autocommit(node: ast.AST) -> bool:
    match node:
        case ast.keyword(arg="isolation_level", value=ast.Constant(value=None)):
            return True
        case ast.keyword(arg="autocommit", value=ast.Constant(value=True)):
            return True
        case ast.Assign(targets=[ast.Attribute(attr="isolation_level")], value=ast.Constant(value=None)):
            return True
        case ast.Assign(targets=[ast.Attribute(attr="autocommit")], value=ast.Constant(value=True)):
            return True
    return False
