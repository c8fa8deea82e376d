"""What of docs/ is written from the code by ``make schemas``: the schemas of JSON documents, the tables of phases."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel

from ..assertions.stored_evidence import StoredEvidence
from ..documents import schema_of
from .artifacts.lock import Lock
from .certification.certificate import Certificate
from .phase_tables import write_tables
from .trial.document import TrialDocument

DOCUMENTS: Mapping[str, type[BaseModel]] = {
    "certificate": Certificate,
    "trial": TrialDocument,
    "evidence": StoredEvidence,
    "lock": Lock,
}


def schema_file(name: str) -> str:
    return f"{name}.schema.json"


def write_schemas(docs: Path) -> None:
    for name, model in DOCUMENTS.items():
        text = json.dumps(schema_of(model), indent=2, ensure_ascii=False)
        (docs / schema_file(name)).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]))
    write_tables(Path(sys.argv[1]))
