"""The syntax trees of sources, made by one thread at a time.

CPython counts the depth of a tree that it makes for the whole interpreter: where two threads make one each, either may
end in "SystemError: AST constructor recursion depth mismatch" (CPython gh-106905, seen with 3.11.7).
"""

from __future__ import annotations

import ast
import threading

_MAKING = threading.Lock()


def parsed(source: str | bytes, filename: str = "<unknown>") -> ast.Module:
    """As :func:`ast.parse`, and with its errors."""
    with _MAKING:
        return ast.parse(source, filename=filename)
