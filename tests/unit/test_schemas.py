"""The schemas in docs/ are those of the documents."""

from __future__ import annotations

import json
from pathlib import Path

from onceproof.harness.certification.certificate import schema

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_schema_of_certificates_in_docs_is_the_one_that_follows_from_the_code() -> None:
    """Written by ``make schemas``."""
    assert json.loads((DOCS / "certificate.schema.json").read_text(encoding="utf-8")) == schema()
