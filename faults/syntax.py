"""What to say where the text of a plan does not follow the grammar."""

from __future__ import annotations

from collections.abc import Sequence

from lark import Token, UnexpectedToken

from .catalogue import phase_named
from .errors import Span, listed

OPENING = {"RSQB": ("LSQB", "["), "RPAR": ("LPAR", "(")}
"""For a closing terminal: the one that opens, and its text."""

SYMBOLS = {
    "_ARROW": "->",
    "LSQB": "[",
    "RSQB": "]",
    "LPAR": "(",
    "RPAR": ")",
    "COLON": ":",
    "EQUAL": "=",
    "COMMA": "a comma",
    "COUNT": "a count (#2)",
    "THEN": "then",
    "UNTIL": "until",
    "WITH": "with",
    "AND": "and",
    "HOLD": "hold(POINT)",
    "SEMICOLON": ";",
    "$END": "the end of the plan",
}
"""How a terminal is named to people, in the order in which they are listed. Others go without saying."""

WORDS = {
    "_ARROW": "an action",
    "THEN": "an action",
    "COLON": "an edge (before or after)",
    "LSQB": "a selector (batch=1)",
    "LPAR": "a target or an argument",
    "EQUAL": "a value",
    "COMMA": "one more after the comma",
}
"""What a word is after each terminal; elsewhere it begins a point."""


def describe_token(error: UnexpectedToken, text: str) -> tuple[str, Span]:
    """The message and the place of a token that cannot stand where it does."""
    token: Token = error.token
    if token.type == "PLACE":
        return describe_character(text, token.start_pos or 0)
    if token.type == "$END":
        end = len(text.rstrip())
        span, found = Span(end, end), "the plan ends"
    else:
        span = Span(token.start_pos or 0, token.end_pos or 0)
        found = "the line ends" if token.type == "NEWLINE" else f"found {token}"
    read = _read_so_far(error)
    accepted = set(error.accepts or error.expected)
    return f"expected {_expected(accepted, read)}, but {found}{_still_open(accepted, read, text)}", span


def _read_so_far(error: UnexpectedToken) -> Sequence[object]:
    """The parser's stack: tokens, and trees of what is already complete."""
    parser = error.interactive_parser
    return list(parser.parser_state.value_stack) if parser else []


def _expected(accepted: set[str], read: Sequence[object]) -> str:
    last = read[-1].type if read and isinstance(read[-1], Token) else None
    if last == "PLACED":
        return f"its place, as in {phase_named(str(read[-1])).example}"
    if accepted & OPENING.keys():
        accepted = accepted - ({"EQUAL", "LSQB"} if "EQUAL" in accepted else set())
    if accepted == {"COMMA"}:  # of a series alone: elsewhere the bracket may be closed as well
        return "a comma and times=N, as in every(5s, times=3)"
    if "PLACE" in accepted:
        place = phase_named(str(read[-2])).place
        return f"{place.meaning} ({place.sample})" if place else "a place"
    named = [WORDS.get(last or "", "a phase")] if "WORD" in accepted else []
    return listed(named + [name for terminal, name in SYMBOLS.items() if terminal in accepted])


def _still_open(accepted: set[str], read: Sequence[object], text: str) -> str:
    """Which bracket has yet to be closed, if one may be closed here."""
    for closing in accepted & OPENING.keys():
        opening, symbol = OPENING[closing]
        starts = [token.start_pos or 0 for token in read if isinstance(token, Token) and token.type == opening]
        if starts:
            column = starts[-1] - (text.rfind("\n", 0, starts[-1]) + 1) + 1
            return f": the {symbol} at column {column} is not closed"
    return ""


def describe_character(text: str, at: int) -> tuple[str, Span]:
    """The message and the place of a character that can begin nothing where it stands."""
    character = text[at]
    span = Span(at, at + 1)
    match character:
        case '"':
            return 'this quoted text is not closed: end it with " on the same line', Span(at, _line_end(text, at))
        case "'":
            return "text is quoted with \", not with '", span
        case "#":
            return "a count is # and a number, as in #2; a comment needs a blank before its #", span
        case _:
            return f'unexpected {character!r}: values with other characters are quoted, as in "a b"', span


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end
