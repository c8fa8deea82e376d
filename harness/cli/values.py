"""What every value on the command line is held against, whichever option it belongs to.

cyclopts rounds 3.4 to a whole number. It takes an empty text as one like any other, though it is a script's variable
that is not set, and bytes that are no text, which no document can hold. It calls :func:`check_values` with what it has
parsed, before anything of it is converted.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

from cyclopts import UNSET, App, Argument, CycloptsError, Token

from ..run_directories import is_text


def check_values(app: App, commands: tuple[str, ...], arguments: Iterable[Argument]) -> None:
    """For ``App(config=...)``. Raises CycloptsError for a value that will not do, by the name of its option."""
    found = list(arguments)
    for argument in found:
        for token in argument.tokens:
            if token.implicit_value is UNSET:  # a flag has no value
                _check(argument, token)
    _check_sink(found)


def _check(argument: Argument, token: Token) -> None:
    name = token.keyword or _name(argument)
    if not is_text(token.value):
        raise CycloptsError(msg=f"{name} {token.value!r} is no UTF-8 text: give another.")
    if token.value == "" and _takes(argument.hint, str, Path):
        raise CycloptsError(msg=f"{name} is empty: {'' if argument.required else 'leave it out, or '}give a value.")
    if "." in token.value and _takes(argument.hint, int):
        raise CycloptsError(msg=f"{name} {token.value} is no whole number: give one, without a point.")


def _check_sink(arguments: Iterable[Argument]) -> None:
    """``--jars`` takes all words up to the next option: also the sink, where that is written behind it."""
    given = {argument.name: [token.value for token in argument.tokens] for argument in arguments}
    jars = given.get("--jars")
    if jars and not given.get("--sink") and not given.get("--resume"):
        raise CycloptsError(
            msg=f"there is no sink, for --jars takes all words behind it ({', '.join(jars)}): write the sink first."
        )


def _name(argument: Argument) -> str:
    """Of one that is given by its place, as the help has it."""
    return argument.name.lstrip("-").upper()


def _takes(hint: Any, *kinds: type) -> bool:
    """Whether the values of an argument are of such a kind: each of them, in a list or a tuple."""
    return hint in kinds or any(_takes(part, *kinds) for part in get_args(hint))
