"""Holds what is printed and stored against its schema in docs/."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

DOCS = Path(__file__).resolve().parents[1] / "docs"


@cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((DOCS / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def valid(document: Any, name: str) -> Any:
    """The document as it is once printed, if it is what the schema says."""
    printed = json.loads(json.dumps(document))
    _validator(name).validate(printed)
    return printed
