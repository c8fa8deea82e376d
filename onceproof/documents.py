"""JSON documents that are kept and read back: written as a whole, checked against their model when they are read, and
a broken one is one clear line.

>>> from pydantic import TypeAdapter
>>> parse_document(b'{"batches": "many"}', TypeAdapter(dict[str, int]), "sizes.json")
Traceback (most recent call last):
...
onceproof.documents.DocumentError: sizes.json: field batches is 'many': input should be a valid integer
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

CLOSED = ConfigDict(extra="forbid", frozen=True)
"""Of a model whose fields are all documented: a field that it does not know is an error."""

SHOWN = 80
"""So many characters of a wrong value are shown."""

T = TypeVar("T")


class DocumentError(ValueError):
    """A file that is not what it must be, in one line: the file, the field and its value."""


def read_document(path: Path, adapter: TypeAdapter[T], name: str | None = None) -> T:
    """The document in ``path``, which the error calls ``name``. Raises OSError, or DocumentError for a broken file."""
    return parse_document(path.read_bytes(), adapter, name or str(path))


def parse_document(text: bytes, adapter: TypeAdapter[T], name: str) -> T:
    """As ``read_document``, from the file's bytes. JSON's types are taken as they are: ``"1"`` is no number."""
    try:
        return adapter.validate_json(text, strict=True)
    except ValidationError as error:
        raise DocumentError(f"{name}: {_first(error)}") from error


def write_document(path: Path, text: str) -> None:
    """Replace a file as a whole: whoever reads it finds the old text or the new one."""
    temporary = path.with_name(f".{path.name}")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def file_digest(path: Path) -> str:
    """sha256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a model, as docs/ has it."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | model.model_json_schema()


def _first(error: ValidationError) -> str:
    """The first thing that is wrong: the field, its value, and what it should be."""
    found = error.errors(include_url=False)[0]
    field = ".".join(map(str, found["loc"]))
    if found["type"] == "json_invalid":
        return found["msg"]
    if found["type"] == "missing":
        return f"field {field} is missing"
    message = found["msg"].removeprefix("Value error, ")
    where = f"field {field} is" if field else "it is"
    return f"{where} {_short(found['input'])}: {message[:1].lower()}{message[1:]}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
