"""The one error of the plan language, which shows the place in the plan and says what would be valid there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

MARGIN = 60
"""Characters of a long line that are shown on each side of an error."""


@dataclass(frozen=True)
class Span:
    """A stretch of a plan's text: offsets in characters, ``end`` exclusive."""

    start: int
    end: int


class PlanError(ValueError):
    """A plan that cannot be: ``message`` names the thing, its value and what would be valid.

    ``line`` and ``column`` count from 1, in characters; ``text`` is the whole plan and ``offending`` the part at fault
    (empty at the end of the plan). As text it is the message, the line and a caret under the column.
    """

    def __init__(self, message: str, text: str, span: Span) -> None:
        before = text[: span.start]
        self.message = message
        self.text = text
        self.offending = text[span.start : span.end].partition("\n")[0]
        self.line = before.count("\n") + 1
        self.column = span.start - (before.rfind("\n") + 1) + 1
        super().__init__(message)

    @property
    def summary(self) -> str:
        """The error in one line."""
        return f"plan, line {self.line}, column {self.column}: {self.message}"

    def __str__(self) -> str:
        shown, indent = self._shown()
        caret = "^" * max(1, min(len(self.offending), len(shown) - indent))
        return f"{self.summary}\n  {shown}\n  {' ' * indent}{caret}"

    def _shown(self) -> tuple[str, int]:
        """The offending line, or the part of it around the column, and the column's distance from its start."""
        line = _printable(self.text.split("\n")[self.line - 1])
        at = self.column - 1
        start = at - MARGIN if at > MARGIN + 3 else 0
        end = at + max(len(self.offending), 1) + MARGIN
        head = "..." if start else ""
        tail = "..." if end < len(line) else ""
        return head + line[start:end] + tail, at - start + len(head)


def _printable(line: str) -> str:
    """The line with a blank for what has no width of its own, so that the caret stands right."""
    return "".join(character if character.isprintable() else " " for character in line).rstrip()


def listed(words: Iterable[str], last: str = "or") -> str:
    """``a, b or c``.

    >>> listed(["driver", "executor", "broker"])
    'driver, executor or broker'
    """
    words = list(words)
    return f" {last} ".join(([", ".join(words[:-1])] if words[1:] else []) + words[-1:])


def closest(word: str, valid: Iterable[str], most: int = 1) -> list[str]:
    """Those that a word may have been meant to be, the likeliest first.

    >>> closest("sink.Comit", ["sink.write", "sink.commit"])
    ['sink.commit']
    """
    lower = {each.lower(): each for each in valid}
    return [lower[one] for one in get_close_matches(word.lower(), lower, n=most)]


def nearest(word: str, valid: Iterable[str]) -> str:
    """What to say about a word that is not valid: the one it may have been meant to be, and all there are.

    >>> nearest("sink.comit", ["sink.write", "sink.commit"])
    'did you mean sink.commit? Valid: sink.write, sink.commit'
    """
    valid = list(valid)
    close = closest(word, valid)
    question = f"did you mean {close[0]}? " if close else ""
    return f"{question}{'Valid' if question else 'valid'}: {', '.join(valid)}" if valid else "none is valid here"
