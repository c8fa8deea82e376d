"""A trial as one JSON document, for ``--json`` and the run directory. docs/trial.schema.json is its schema."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ...assertions import verdict_as_json
from ...faults import format_plan
from .spec import TrialResult

TRIAL = "trial.json"


def trial_as_json(result: TrialResult) -> dict[str, Any]:
    spec = result.spec
    return {
        **verdict_as_json(result.verdict),
        "sink": {"name": spec.sink.name, "path": str(spec.sink.path), "guarantee": spec.sink.guarantee.value},
        "job": {"name": spec.job.name, "path": str(spec.job.path), "expectation": str(spec.job.expectation_path)},
        "plan": format_plan(spec.plan),
        "seed": spec.workload.seed,
        "workload": spec.workload.as_json(),
        "timings": dict(result.timings),
        "environment": dict(result.versions),
        "configuration": {
            "master": spec.resolved.master,
            "conf": dict(spec.conf),
            "jars": [{"name": Path(jar).name, "sha256": digest(Path(jar))} for jar in spec.jars],
        },
        "run_directory": str(result.directory),
        "warnings": list(result.warnings),
    }


def digest(path: Path) -> str:
    """sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_trial(result: TrialResult) -> None:
    text = json.dumps(trial_as_json(result), indent=2, ensure_ascii=False)
    (result.directory / TRIAL).write_text(text + "\n", encoding="utf-8")
