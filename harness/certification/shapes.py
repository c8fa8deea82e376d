"""What texts have in common that differ in their values only: requests, and names of files.

A sink may write a request for each row, with the row's values in it: each of them is of no kind of its own.

>>> shapes([f"UPDATE t SET state = {state}" for state in ("'new'", "'done'")])
["UPDATE t SET state = 'new'", "UPDATE t SET state = 'done'"]
>>> {*shapes([f"UPDATE t SET name = '{name}'" for name in "abcdefghijklmnopqrst"])}
{"UPDATE t SET name = ''"}
>>> sorted({*shapes([*(f"HSET row:{key} name {key}" for key in "abcdefghijklmnopqrst"), "HSET batches 7 done"])})
['HSET batches', 'HSET row']
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence

MOST = 12
"""So many texts of one kind may say different things; of more, what differs is taken for values."""

UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
"""As a regular expression."""


def shapes(texts: Sequence[str]) -> list[str]:
    """Each text without what changes from one to the other: numbers, and as much more of it as leaves MOST of them."""
    found = list(texts)
    for without in _LEVELS:
        found = [without(text) for text in found]
        if len(set(found)) <= MOST:
            break
    return found


def shapes_of_kinds(kinds: Sequence[Hashable], texts: Sequence[str]) -> list[str]:
    """The same for texts of several kinds: those of one kind are compared with each other.

    >>> shapes_of_kinds(["SET", "DEL", "SET"], ["row:1", "row:7", "row:2"])
    ['row:0', 'row:0', 'row:0']
    """
    places: dict[Hashable, list[int]] = {}
    for place, kind in enumerate(kinds):
        places.setdefault(kind, []).append(place)
    found = dict[int, str]()
    for own in places.values():
        found.update(zip(own, shapes([texts[place] for place in own]), strict=True))
    return [found[place] for place in range(len(texts))]


def _without_numbers(text: str) -> str:
    return re.sub(rf"{UUID}|\d+", "0", text)


def _without_quoted(text: str) -> str:
    return re.sub(r"'[^']*('|$)", "''", text)


def _first_words(text: str) -> str:
    """Up to where a name, a number or a sign stands."""
    found = re.match(r"[^\W\d]*([ /]+[^\W\d]+)*", text)
    return found[0] if found else ""


def _nothing(text: str) -> str:
    return ""


_LEVELS: tuple[Callable[[str], str], ...] = (_without_numbers, _without_quoted, _first_words, _nothing)
