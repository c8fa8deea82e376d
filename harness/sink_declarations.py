"""What a sink declares by its constants and functions: each is a value that it can have, or a SinkError says how to
write it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import get_args

from ..assertions import ClaimName, Guarantee
from ..faults.settings import check_property
from ..sources import parsed
from .artifacts.lock import is_coordinates
from .errors import SinkError
from .targets import targets

LONGEST_SETTLE = 600.0
"""Seconds."""

TARGET_KEY = "target.key"
"""The KEY of a sink that goes by the key of its job."""


def guarantee(path: Path, value: object) -> Guarantee:
    claims: tuple[str, ...] = get_args(ClaimName)
    if value is None:
        raise SinkError(
            f'sink {path.name} has no GUARANTEE: add GUARANTEE = "exactly-once" (or {" or ".join(claims[1:])})'
        )
    if value not in claims:
        raise SinkError(f"sink {path.name}: GUARANTEE = {value!r} is unknown: it is one of {', '.join(claims)}")
    return Guarantee(value)


def services(path: Path, value: object, written: Collection[str] | None) -> tuple[str, ...]:
    """``written``: those that the file's text names; None where it computes them."""
    known = list(targets())
    if isinstance(value, str) or not isinstance(value, Sequence):
        meant = value if value in known else known[0]
        raise SinkError(f'sink {path.name}: SERVICES = {value!r} is not a tuple: write SERVICES = ("{meant}",)')
    for service in value:
        if service not in known:
            raise SinkError(
                f"sink {path.name}: service {service!r} in SERVICES is not known: it is one of {', '.join(known)}"
            )
        if written is not None and service not in written:
            raise SinkError(
                f"sink {path.name}: service {service!r} is not in the text of SERVICES: write SERVICES = "
                f"{tuple(value)!r} at the left margin"
            )
    return tuple(value)


def not_asked_for(path: Path, target: Mapping[str, object], line: int | None = None) -> str:
    """What to do about a sink that failed, at ``line`` or somewhere in its code, where it uses a field of ``target``
    that is None because SERVICES lacks it."""
    services = {field: service for service, kind in targets().items() for field in kind.fields}
    for node in ast.walk(parsed(path.read_bytes())):
        match node:
            case ast.Attribute(ast.Name("target"), field) if (
                line in (None, node.lineno) and field in services and target.get(field) is None
            ):
                return f": target.{field} is None, because SERVICES does not name {services[field]!r}: add it there"
    return ""


def columns(path: Path, word: str, value: object) -> tuple[str, ...] | None:
    """The columns that a sink's KEY or HOLDS names."""
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Sequence) or not value:
        raise SinkError(f'sink {path.name}: {word} = {value!r} is not a tuple of columns: write {word} = ("key",)')
    for column in value:
        if not isinstance(column, str):
            raise SinkError(f'sink {path.name}: {column!r} in {word} is not a column name: write {word} = ("key",)')
    if len(set(value)) < len(value):
        raise SinkError(f"sink {path.name}: {word} = {tuple(value)!r} names a column twice: name each once")
    return tuple(value)


def order(path: Path, value: object, key: tuple[str, ...] | None, upsert: bool) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise SinkError(f'sink {path.name}: ORDER = {value!r} is not a column name: write ORDER = "event_time"')
    if key is None and not upsert:
        raise SinkError(f'sink {path.name}: ORDER = {value!r} needs a KEY: add KEY = ("key",), or remove ORDER')
    if value in (key or ()):
        raise SinkError(f"sink {path.name}: ORDER = {value!r} is a column of KEY: all rows of a key are equal in it")
    return value


def flag(path: Path, word: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise SinkError(f"sink {path.name}: {word} = {value!r} is neither True nor False: write {word} = True")
    return value


def settle(path: Path, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LONGEST_SETTLE:
        raise SinkError(
            f"sink {path.name}: SETTLE = {value!r} is not a number of seconds from 0 to {LONGEST_SETTLE:g}: "
            "write SETTLE = 2.0"
        )
    return float(value)


def jars(path: Path, value: object) -> tuple[str, ...]:
    """Coordinates as they are, files by their absolute path."""
    form = 'write JARS = ("group:artifact:version", "lib/mine.jar"), a flat list of all that is needed'
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(jar, str) for jar in value):
        raise SinkError(f"sink {path.name}: JARS = {value!r} is not a tuple of jars: {form}")
    found = [jar if is_coordinates(jar) else str(path.parent / jar) for jar in value]
    for jar, place in zip(value, found, strict=True):
        if place != jar and not Path(place).is_file():
            raise SinkError(f"sink {path.name}: {jar!r} in JARS is neither coordinates nor a file: {form}")
    return tuple(found)


def conf(path: Path, value: object) -> Mapping[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(part, str) for pair in value.items() for part in pair):
        raise SinkError(
            f"sink {path.name}: CONF = {value!r} is not a mapping of texts: "
            'write CONF = {"spark.sql.extensions": "org.example.Extension"}'
        )
    try:
        for name in value:
            check_property(name)
    except ValueError as error:
        raise SinkError(f"sink {path.name}: CONF: {error}") from error
    return dict(value)


def functions(
    path: Path,
    names: Sequence[str],
    misfits: Sequence[tuple[str, str]],
    deferred: Sequence[str],
    services: Sequence[str],
) -> frozenset[str]:
    found = frozenset(names)
    for head, form in misfits:
        raise SinkError(f"sink {path.name}: {head} is called with other arguments: write {form}")
    for name in deferred:
        raise SinkError(
            f"sink {path.name}: {name} is a coroutine or a generator, so a call of it does nothing: write a function "
            "that has done its work when it returns (asyncio.run)"
        )
    if not found & {"write_batch", "attach"}:
        raise SinkError(
            f"sink {path.name} has neither write_batch(df, batch_id, target) nor attach(stream, target): define one"
        )
    if {"write_batch", "attach"} <= found:
        raise SinkError(f"sink {path.name} has both write_batch and attach: keep the one that writes")
    if "read" not in found and not any(targets()[service].read for service in services):
        raise SinkError(f"sink {path.name} has no read(target): without it nobody can tell what a reader sees")
    return found
