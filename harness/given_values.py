"""What a trial is given by the command line and by the pytest plugin, which check it alike.

``named`` says what the user knows a value by: ``--jars`` there, ``jars`` here.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..naming import Named, as_option
from .artifacts.lock import is_coordinates
from .errors import UsageError, no_file
from .request import check_properties

DAY = 86_400
"""Seconds: no deadline is longer."""


def check_jars(jars: Iterable[str], named: Named = as_option) -> Sequence[str]:
    """Their absolute paths. Raises UsageError for one that is no jar, OSError for one that may not be read."""
    return [_jar(jar, named("jars")) for jar in jars]


def _jar(jar: str, name: str) -> str:
    path = Path(jar)
    if not path.is_file():
        raise UsageError(f"{name} {jar} {no_file(path)}: give the path of a jar file{_other(jar)}")
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise UsageError(f"{name} {jar} is no jar, which is a zip file: give the path of a jar file")
    return str(path.resolve())


def _other(jar: str) -> str:
    return ", or name these coordinates among the sink's JARS" if is_coordinates(jar) else ""


def check_conf(properties: Iterable[tuple[str, str]], named: Named = as_option) -> dict[str, str]:
    """Properties of Spark by their keys. Raises UsageError for a key that is none of Spark's, or that is chosen
    elsewhere, and for one with two values."""
    found: dict[str, str] = {}
    name = named("conf")
    for key, value in properties:
        if found.setdefault(key, value) != value:
            raise UsageError(f"{name} {key} is given twice, as {found[key]!r} and as {value!r}: leave one out")
    check_properties(found, named)
    return found
