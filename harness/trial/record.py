"""Writes a trial as one JSON document, for ``--json`` and the run directory, and reads it back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...assertions import verdict_document
from ...documents import file_digest, read_document, write_document
from ...faults import format_plan
from .document import (
    TRIAL_DOCUMENT,
    Configuration,
    JarUsed,
    JobNamed,
    SinkNamed,
    Timings,
    TrialDocument,
    Versions,
    WorkloadUsed,
)
from .recovery import recoveries_in
from .spec import TrialResult

TRIAL = "trial.json"


def trial_as_json(result: TrialResult) -> dict[str, Any]:
    return trial_document(result).model_dump(mode="json")


def trial_document(result: TrialResult) -> TrialDocument:
    spec = result.spec
    return TrialDocument(
        **dict(verdict_document(result.verdict)),
        sink=SinkNamed.model_validate(
            {"name": spec.sink.name, "path": str(spec.sink.path), "guarantee": spec.sink.guarantee.value}
        ),
        job=JobNamed(name=spec.job.name, path=str(spec.job.path), expectation=str(spec.job.expectation_path)),
        plan=format_plan(spec.plan),
        seed=spec.workload.seed,
        workload=WorkloadUsed(**spec.workload.as_json()),
        timings=Timings(**result.timings),
        recoveries=recoveries_in(result.journal),
        environment=Versions(**result.versions),
        configuration=Configuration(
            master=spec.resolved.master,
            conf=dict(spec.conf),
            jars=[JarUsed(name=Path(jar).name, sha256=file_digest(Path(jar))) for jar in spec.jars],
            services=dict(spec.own_services),
        ),
        warnings=list(result.warnings),
        run_directory=str(result.directory),
        determinism=result.determinism,
    )


def write_trial(result: TrialResult) -> None:
    write_document(result.directory / TRIAL, json.dumps(trial_as_json(result), indent=2, ensure_ascii=False) + "\n")


def read_trial(directory: Path) -> TrialDocument:
    """The document of a run directory. Raises OSError, or DocumentError for a broken file."""
    return read_document(directory / TRIAL, TRIAL_DOCUMENT)
