"""The result as one JSON document: a verdict, or a certificate as docs/certificate.schema.json has it."""

from __future__ import annotations

import json

from ..certification.certificate import certificate_text
from ._declaration import Report, StoredTrial


def trial(stored: StoredTrial) -> str:
    return json.dumps(stored.document, indent=2, ensure_ascii=False)


REPORT = Report(meaning="one JSON document", trial=trial, certificate=certificate_text)
