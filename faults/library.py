"""The library of known failures: plans with the story of each, the sink that it catches and the one that withstands it.

A failure is a file ``plans/NAME.plan``: a plan as docs/plans.md has it, so that it can be copied and changed, below a
comment whose lines are a TOML document with the fields of :class:`KnownFailure`.

>>> known_failure("lost_commit_log").catches.sink
'kafka_append'
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter

from ..documents import CLOSED, DocumentError, parse_document
from .errors import nearest

PLANS = Path(__file__).with_name("plans")


class Caught(BaseModel):
    """A sink that breaks under the plan: what it is held to, and the kinds of anomalies that are found, in the order of
    the verdict."""

    model_config = CLOSED

    sink: str
    claim: Literal["exactly-once", "at-least-once", "at-most-once"] = "exactly-once"
    finds: tuple[str, ...]


class Withstood(BaseModel):
    """A sink that is exactly-once under the plan."""

    model_config = CLOSED

    sink: str


class Header(BaseModel):
    """What a file says of its plan. ``see``: who has described the failure: a JIRA, a KIP, a class or a page. ``only``:
    the environment that alone can carry the plan out."""

    model_config = CLOSED

    title: str
    story: str
    see: tuple[str, ...]
    only: Literal["docker"] | None = None
    catches: Caught
    withstands: Withstood


class KnownFailure(Header):
    """A plan of the library with its name and text."""

    name: str
    plan: str


class NoSuchFailure(ValueError):
    """The library has no plan of this name; one line."""


def known_failures() -> list[KnownFailure]:
    """All of the library, by name. Raises DocumentError for a file whose header is not as it must be."""
    return [_read(path) for path in sorted(PLANS.glob("*.plan"))]


def known_failure(name: str) -> KnownFailure:
    """One by its name. Raises NoSuchFailure."""
    names = [path.stem for path in sorted(PLANS.glob("*.plan"))]
    if name not in names:
        raise NoSuchFailure(f"no known failure is called {name!r}: {nearest(name, names)}")
    return _read(PLANS / f"{name}.plan")


def _read(path: Path) -> KnownFailure:
    lines = path.read_text(encoding="utf-8").splitlines()
    end = next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))
    header = parse_document(json.dumps(_toml(lines[:end], path)).encode(), TypeAdapter(Header), path.name)
    return KnownFailure(name=path.stem, plan="\n".join(lines[end:]).strip(), **dict(header))


def _toml(comment: list[str], path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads("\n".join(line.removeprefix("#").removeprefix(" ") for line in comment))
    except tomllib.TOMLDecodeError as error:
        raise DocumentError(f"{path.name}: the comment in front of the plan is no TOML: {error}") from error
