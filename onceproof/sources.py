"""The syntax trees of sources, made by one thread at a time.

CPython counts the depth of a tree that it makes for the whole interpreter: where two threads make one each, either may
end in "SystemError: AST constructor recursion depth mismatch" (CPython gh-106905, seen with 3.11.7).
"""

from __future__ import annotations

import ast
import threading
from collections import deque
from collections.abc import Iterator

_MAKING = threading.Lock()


def parsed(source: str | bytes, filename: str = "<unknown>") -> ast.Module:
    """As :func:`ast.parse`, and with its errors."""
    with _MAKING:
        return ast.parse(source, filename=filename)


def executed(tree: ast.Module, functions: bool = True) -> Iterator[ast.AST]:
    """Its nodes, the outer ones first, but for what only a type checker reads (``if TYPE_CHECKING:``), and with
    ``functions=False`` but for what is in them."""
    waiting: deque[ast.AST] = deque([tree])
    while waiting:
        node = waiting.popleft()
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test).rpartition(".")[2] == "TYPE_CHECKING":
            waiting.extend(node.orelse)
        elif functions or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting.extend(ast.iter_child_nodes(node))
