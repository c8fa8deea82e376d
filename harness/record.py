"""A trial as one JSON document, for ``--json`` and the run directory. docs/trial.schema.json is its schema."""

from __future__ import annotations

import json
from typing import Any

from ..assertions import verdict_as_json
from ..faults import format_plan
from .spec import TrialResult

TRIAL = "trial.json"


def trial_as_json(result: TrialResult) -> dict[str, Any]:
    spec = result.spec
    return {
        **verdict_as_json(result.verdict),
        "sink": {"name": spec.sink.name, "path": str(spec.sink.path), "guarantee": spec.sink.guarantee.value},
        "plan": format_plan(spec.plan),
        "seed": spec.workload.seed,
        "workload": spec.workload.as_json(),
        "timings": dict(result.timings),
        "environment": dict(result.versions),
        "run_directory": str(result.directory),
    }


def write_trial(result: TrialResult) -> None:
    text = json.dumps(trial_as_json(result), indent=2, ensure_ascii=False)
    (result.directory / TRIAL).write_text(text + "\n", encoding="utf-8")
