"""What a report declares of itself, and what it is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...assertions import Verdict, verdict_as_json
from ..certification.certificate import Certificate


@dataclass(frozen=True)
class StoredTrial:
    """A run directory and its verdict. ``about`` is the trial's own document (sink, job, plan, seed, versions, ...; see
    docs/trial.schema.json), empty where the directory has none; its verdict may be another one than ``verdict``."""

    verdict: Verdict
    directory: Path
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def document(self) -> dict[str, Any]:
        """The verdict as one JSON object, with the absolute path of its directory."""
        return {**verdict_as_json(self.verdict), "run_directory": str(self.directory.resolve())}


@dataclass(frozen=True)
class Report:
    """A way to write a stored result down: ``trial`` and ``certificate`` return the whole text."""

    meaning: str
    trial: Callable[[StoredTrial], str]
    certificate: Callable[[Certificate], str]


def check_report(name: str, report: object) -> Report:
    """The declaration, if it can be used. Raises TypeError, one line."""
    if not isinstance(report, Report):
        raise TypeError(f"report {name} declares {report!r} in the place of a Report")
    return report
