"""How values are written in a plan: whole numbers, durations, bare words and quoted text."""

from __future__ import annotations

import builtins
import json
import math
import re
from decimal import Decimal

from ..plans import Value
from .declarations import Parameter
from .errors import closest, listed

LONGEST = 24 * 60 * 60.0
"""The longest duration, in seconds: a day. A mistyped one must not outlast every deadline."""

LARGEST = 10**18 - 1
"""The largest number: one of 18 digits, so that all processes can hold it in 64 bits."""

BUILTIN_ERRORS = tuple(
    name for name, one in vars(builtins).items() if isinstance(one, type) and issubclass(one, BaseException)
)

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m)")
_FACTORS = {"ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60)}
_NAMED = re.compile(r"(\w+)\((.*)\)")
_PARTITION = re.compile(r".+-[0-9]{1,9}")
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_BARE_PLACE = re.compile(r"[\w.\-/$]+")


def read_value(parameter: Parameter, text: str, quoted: bool) -> Value:
    """The value of ``parameter`` that ``text`` (unquoted by now) stands for. Raises ValueError.

    >>> read_value(Parameter("after", "duration", ""), "300ms", quoted=False)
    0.3
    """
    match parameter.kind:
        case "number":
            return _number(parameter, text, quoted)
        case "duration":
            return duration(text, quoted)
        case "class":
            return _class_name(parameter, text)
        case "flag":
            return _flag(parameter, text, quoted)
        case "text":
            return _text(parameter, text)


def duration(text: str, quoted: bool = False) -> float:
    """A duration in seconds. Raises ValueError."""
    found = None if quoted else _DURATION.fullmatch(text)
    if not found:
        raise ValueError(f"{shown(text, quoted)} is not a duration: write it like 300ms, 2s, 1.5s or 2m")
    seconds = float(Decimal(found[1]) * _FACTORS[found[2]])
    if seconds > LONGEST:
        raise ValueError(f"{text} is longer than a day: {print_duration(LONGEST)} is the longest duration")
    return seconds


def _number(parameter: Parameter, text: str, quoted: bool) -> int:
    wanted = f"{parameter.name} takes a whole number of at least {parameter.minimum}"
    if not quoted and re.fullmatch(r"[0-9]{19,}", text):
        raise ValueError(f"{wanted} and at most {LARGEST}, not {text}")
    if quoted or not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < parameter.minimum:
        raise ValueError(f"{wanted}, not {shown(text, quoted)}")
    return int(text)


def _flag(parameter: Parameter, text: str, quoted: bool) -> bool:
    if quoted or text not in ("true", "false"):
        raise ValueError(f"{parameter.name} is true or false, not {shown(text, quoted)}")
    return text == "true"


def _class_name(parameter: Parameter, text: str) -> str:
    if not all(part.isidentifier() for part in text.split(".")):
        raise ValueError(
            f"{parameter.name} takes the dotted name of a class, like psycopg.OperationalError, not {text!r}"
        )
    elsewhere = [choice for choices in parameter.choices_in.values() for choice in choices]
    if "." not in text and text not in (*BUILTIN_ERRORS, *elsewhere):
        meant = "".join(f": did you mean {one}?" for one in closest(text, BUILTIN_ERRORS))
        raise ValueError(
            f"{parameter.name} takes the dotted name of a class, like psycopg.OperationalError, or a builtin one, and "
            f"{text} is none{meant}"
        )
    return text


def _text(parameter: Parameter, text: str) -> str:
    if parameter.pattern and not re.fullmatch(parameter.pattern, text):
        raise ValueError(f"{parameter.name} is {parameter.meaning}, not {text!r}")
    return _choice(parameter, text) if parameter.choices else text


def _choice(parameter: Parameter, text: str) -> str:
    if found := _NAMED.fullmatch(text):
        return f"{_named(parameter, found[1].lower(), found[2])}({found[2]})"
    if text.lower() not in parameter.choices:
        meant = "".join(f": did you mean {one}?" for one in closest(text, parameter.choices))
        raise ValueError(f"{parameter.name} is {listed(parameter.choices)}, not {text}{meant}")
    return text.lower()


def _named(parameter: Parameter, choice: str, name: str) -> str:
    """The choice, if it may have this name in parentheses behind it."""
    if choice not in parameter.named:
        known = listed(f"{one}({what})" for one, what in parameter.named.items())
        raise ValueError(f"{parameter.name} is no {choice}({name}): with a name it is {known or 'nothing'}")
    wanted = parameter.named[choice]
    if not name or (wanted == "TOPIC-PARTITION" and not _PARTITION.fullmatch(name)):
        raise ValueError(f"{choice}(...) takes {wanted}{', such as events-0' if '-' in wanted else ''}, not {name!r}")
    return choice


def print_value(value: Value) -> str:
    """The canonical text of a value: floats are durations, in seconds."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return print_duration(value)
    if isinstance(value, int):
        return str(value)
    return value if _BARE.fullmatch(value) else quote(value)


def print_duration(seconds: float) -> str:
    """The shortest exact text of a duration.

    >>> print_duration(0.3), print_duration(1.5), print_duration(120.0)
    ('300ms', '1.5s', '2m')
    """
    if not math.isfinite(seconds):
        return str(seconds)
    exact = Decimal(repr(float(seconds)))
    unit = "m" if exact >= 1 else "ms"
    number = exact / _FACTORS[unit]
    if exact and number == number.to_integral_value():
        return f"{int(number)}{unit}"
    return f"{exact.normalize():f}s"


def print_place(name: str) -> str:
    """The canonical text of what a phase names in brackets: the file of ``line[my_sink.py:42]``."""
    return name if _BARE_PLACE.fullmatch(name) else quote(name)


def quote(text: str) -> str:
    """Text in double quotes with the escapes of JSON, on one line and printable."""
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    if character in '"\\' or not character.isprintable():
        return json.dumps(character)[1:-1]
    return character


def unquote(text: str) -> str:
    """What a quoted text stands for. Raises ValueError for an unknown escape."""
    try:
        return str(json.loads(text, strict=False))
    except ValueError:
        raise ValueError(
            f'{text} has an unknown escape: valid are \\" \\\\ \\n \\t \\r \\b \\f \\/ and \\u0041'
        ) from None


def shown(text: str, quoted: bool) -> str:
    """A value as it was written."""
    return quote(text) if quoted else text
