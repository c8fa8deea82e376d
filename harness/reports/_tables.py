"""Markdown, as GitHub reads it: whatever stands in a text, it stays text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

SPECIAL = re.compile(r"([\\`*_\[\]<|~&])")


def text(value: object) -> str:
    r"""In one line, with nothing in it that Markdown would take for its own.

    >>> print(text("a|b\n<i>"))
    a\|b \<i>
    """
    return SPECIAL.sub(r"\\\1", " ".join(str(value).split()))


def code(value: object) -> str:
    """In one line, set as code, in a table too.

    >>> print(code("a|b"), code("`c`"))
    `a\\|b` `` `c` ``
    """
    line = " ".join(str(value).split()).replace("|", "\\|")
    return f"`` {line} ``" if "`" in line else f"`{line}`"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Of cells that are Markdown already."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def document(parts: Iterable[str]) -> str:
    """Parts with an empty line between them; empty ones are left out."""
    return "\n\n".join(part for part in parts if part)
