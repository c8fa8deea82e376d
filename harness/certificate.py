"""A certificate as JSON: docs/certificate.schema.json is its schema."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from .certify import Certificate, PointResult

CERTIFICATE = "certificate.json"


def certificate_as_json(certificate: Certificate, directory: Path) -> dict[str, Any]:
    spec = certificate.reference.spec
    return {
        "verdict": certificate.outcome.value,
        "guarantee": certificate.guarantee.value if certificate.guarantee else None,
        "claim": spec.claim.value,
        "sink": {"name": spec.sink.name, "path": str(spec.sink.path), "guarantee": spec.sink.guarantee.value},
        "batch": certificate.batch,
        "seed": spec.workload.seed,
        "workload": spec.workload.as_json(),
        "coverage": {"points": certificate.planned, "run": len(certificate.points), "landed": _landed(certificate)},
        "anomalies": _anomalies(certificate),
        "reference": _trial(certificate.reference),
        "points": [_point(point) for point in certificate.points],
        "seconds": round(certificate.seconds, 1),
        "environment": dict(certificate.reference.versions),
        "run_directory": str(directory),
    }


def write_certificate(certificate: Certificate, directory: Path) -> None:
    text = json.dumps(certificate_as_json(certificate, directory), indent=2, ensure_ascii=False)
    (directory / CERTIFICATE).write_text(text + "\n", encoding="utf-8")


def _landed(certificate: Certificate) -> int:
    return sum(all(fault.confirmed for fault in point.result.verdict.faults) for point in certificate.points)


def _anomalies(certificate: Certificate) -> dict[str, int]:
    """At how many points each kind of anomaly was seen."""
    return dict(Counter(anomaly.kind for trial in certificate.trials for anomaly in trial.verdict.anomalies))


def _point(point: PointResult) -> dict[str, Any]:
    return {"step": point.point.step, "plan": point.point.text, "tries": point.tries, **_trial(point.result)}


def _trial(trial: Any) -> dict[str, Any]:
    verdict = trial.verdict
    return {
        "verdict": verdict.outcome.value,
        "exactly_once": verdict.exactly_once.value,
        "guarantee": verdict.guarantee.value if verdict.guarantee else None,
        "reason": verdict.reason,
        "anomalies": {anomaly.kind: anomaly.count for anomaly in verdict.anomalies},
        "seconds": trial.timings["total"],
        "run_directory": str(trial.directory),
    }
