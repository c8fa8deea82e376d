"""What kind of statement an SQL text is, and whether it may change anything, without a parser of SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""
    (?P<comment> --[^\n]* | /\*.*?(?:\*/|\Z) )
  | (?P<quoted>  '(?:[^']|'')*' | "(?:[^"]|"")*" | (?P<tag>\$\w*\$).*?(?:(?P=tag)|\Z) )
  | (?P<word>    [A-Za-z_][\w$.]* )
  | (?P<end>     ; )
  | (?P<call>    \( )
  | (?P<other>   [^\s] )
    """,
    re.VERBOSE | re.DOTALL,
)

TWO_WORDS = {"PREPARE": "TRANSACTION", "COMMIT": "PREPARED", "ROLLBACK": "PREPARED"}
"""Statements of two-phase commit: their first word alone is another statement."""

HARMLESS = frozenset(
    {
        "ABORT", "BEGIN", "CLOSE", "DEALLOCATE", "DECLARE", "DISCARD", "LISTEN", "PREPARE", "RELEASE", "RESET",
        "ROLLBACK", "SAVEPOINT", "SET", "SHOW", "START", "UNLISTEN",
    }
)  # fmt: skip
"""Statements after whose loss nothing is missing: what they set ends with the connection or its transaction."""

READING = frozenset({"SELECT", "TABLE", "VALUES", "FETCH", "MOVE", "EXPLAIN", "WITH"})
"""Statements that only read, unless they call a function, lock rows, or have one that writes inside."""

BY_THE_CONNECTION = frozenset({"STDIN", "STDOUT"})

WRITING = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "INTO", "ANALYZE", "SHARE"})

PURE = frozenset(
    {
        "abs", "any", "array_agg", "avg", "as", "bool_and", "bool_or", "cast", "coalesce", "count", "current_setting",
        "exists", "filter", "from", "greatest", "in", "and", "or", "not", "on", "join", "least", "length", "lower",
        "max", "min", "numeric", "varchar", "nullif", "over", "round", "row_number", "select", "sum", "to_regclass",
        "trim", "union", "upper", "using", "values", "version", "where", "when", "then", "else", "all", "by",
    }
)  # fmt: skip
"""Words before a bracket that call nothing, or a function that changes nothing."""


def statements(text: str) -> list[tuple[str, bool]]:
    """The kind of each statement of a text, and whether it may change anything; an empty statement is none.

    >>> statements("BEGIN; insert into t values ('a;b'); -- done\\n COMMIT")
    [('BEGIN', False), ('INSERT', True), ('COMMIT', True)]
    >>> statements("PREPARE TRANSACTION 'x'"), statements("SELECT max(batch) FROM t"), statements("SELECT publish(3)")
    ([('PREPARE TRANSACTION', True)], [('SELECT', False)], [('SELECT', True)])
    """
    return [_kind(words, calls) for words, calls in _split(text) if words]


def _split(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """The words of each statement, and those of them before an opening bracket."""
    words, calls, last = list[str](), list[str](), ""
    for token in _TOKEN.finditer(text):
        if token.lastgroup == "end":
            yield words, calls
            words, calls, last = [], [], ""
        elif token["word"]:
            last = token["word"]
            words.append(last.upper())
        elif token["call"]:
            calls += [last.lower()] if last else []
            last = ""
        elif not token["comment"]:
            last = token[0] if token[0].startswith('"') else ""
    yield words, calls


def _kind(words: list[str], calls: list[str]) -> tuple[str, bool]:
    first, second = words[0], words[1] if len(words) > 1 else ""
    if TWO_WORDS.get(first) == second:
        return f"{first} {second}", True
    if first == "COPY":  # of rows that pass by the connection the end is a request
        return first, not BY_THE_CONNECTION & set(words)
    if first in READING:
        return first, bool(WRITING & set(words)) or any(name not in PURE for name in calls)
    return first, first not in HARMLESS
