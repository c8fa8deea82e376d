"""The certificate: the judgement over a sweep, and what it covers.

docs/certificate.schema.json is generated from these classes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, TypeAdapter

from ...assertions import ClaimName, Guarantee, GuaranteeName, Outcome, OutcomeName, weakest
from ...documents import CLOSED, DocumentError, read_document, write_document
from ..determinism import Determinism
from ..errors import UsageError
from ..trial.document import SinkNamed, WorkloadUsed
from .points import Profile
from .results import Judged, PointResult
from .scope import Scope

CERTIFICATE = "certificate.json"


class Coverage(BaseModel):
    model_config = CLOSED

    points: int = Field(ge=0, description="points that were to be run")
    run: int = Field(ge=0, description="points that have a verdict")
    landed: int = Field(ge=0, description="points at which every fault's effect was confirmed")


class Certificate(BaseModel):
    """What ``onceproof certify --json`` prints, and certificate.json in its run directory."""

    model_config = CLOSED

    verdict: OutcomeName = Field(
        description="fail outranks inconclusive outranks pass; a sweep that was cut short cannot pass"
    )
    summary: str = Field(description="the verdict with what it covers and what it leaves out, in one line")
    guarantee: GuaranteeName | None = Field(description="the weakest of its trials'; null where that is inconclusive")
    claim: ClaimName
    sink: SinkNamed
    batch: int = Field(ge=0, description="the middle batch, or the only one that was asked for")
    seed: int
    workload: WorkloadUsed
    profile: Profile
    coverage: Coverage
    scope: Scope
    anomalies: dict[str, int] = Field(description="kind to the number of points at which it was seen")
    notes: list[str] = Field(description="what should be known of the sink though it breaks no claim, each once")
    reference: Judged = Field(description="the fault-free trial")
    determinism: Determinism | None = Field(
        default=None, description="whether the job gives the same rows again; null where that was not looked into"
    )
    points: list[PointResult] = Field(description="one for each point, in the order of the space")
    seconds: float = Field(ge=0, description="the whole sweep; of what ran before --resume, what its certificate says")
    environment: dict[str, str] = Field(description="versions")
    inputs: dict[str, str] = Field(description="all that can change a result, by name")
    run_directory: str = Field(description="its absolute path")


def outcome_of(trials: Iterable[OutcomeName], complete: bool) -> OutcomeName:
    """fail outranks inconclusive outranks pass; what is not complete cannot pass.

    >>> outcome_of(["pass", "inconclusive", "fail"], complete=True)
    'fail'
    >>> outcome_of(["pass"], complete=False)
    'inconclusive'
    """
    found = set(trials)
    if "fail" in found:
        return "fail"
    return "pass" if found == {"pass"} and complete else "inconclusive"


def guarantee_of(outcome: OutcomeName, trials: Iterable[Judged]) -> GuaranteeName | None:
    """The weakest guarantee of the trials that have one."""
    if outcome == Outcome.INCONCLUSIVE.value:
        return None
    return weakest(Guarantee(trial.guarantee) for trial in trials if trial.guarantee).value


def summary_of(
    outcome: OutcomeName,
    claim: str,
    scope: Scope,
    reference: Judged,
    results: Sequence[PointResult],
    determinism: Determinism | None = None,
) -> str:
    """``pass as exactly-once: 214 points over 5 batches; not possible here: ...``; where it failed first, and that it
    may be the job's fault."""
    first = next((result for result in results if result.verdict == outcome != "pass"), None)
    if reference.verdict == outcome == "fail":
        where = f"; without a fault: {reference.reason}"
    else:
        where = f"; first at {first.step}: {first.plan}" if first else ""
    job = f"; {determinism.sentence}" if determinism and not determinism.deterministic else ""
    return f"{outcome} as {claim}: {scope.summary}{where}{job}"


def anomalies_of(trials: Iterable[Judged]) -> dict[str, int]:
    return dict(Counter(kind for trial in trials for kind in trial.anomalies))


def notes_of(trials: Iterable[Judged]) -> list[str]:
    """Each note once, with the number of trials if it was made in several."""
    counted = Counter(note for trial in trials for note in trial.notes)
    return [note + (f" ({count} times)" if count > 1 else "") for note, count in counted.items()]


def write_certificate(certificate: Certificate, directory: Path) -> None:
    write_document(directory / CERTIFICATE, certificate_text(certificate) + "\n")


def stored_certificate(directory: Path) -> Certificate | None:
    """That of a sweep's run directory; None if it has none. Raises UsageError if it is damaged."""
    path = directory / CERTIFICATE
    if not path.is_file():
        return None
    try:
        return read_document(path, TypeAdapter(Certificate))
    except (OSError, DocumentError) as error:
        raise UsageError(str(error)) from error


def certificate_text(certificate: Certificate) -> str:
    return json.dumps(certificate_as_json(certificate), indent=2, ensure_ascii=False)


def certificate_as_json(certificate: Certificate) -> dict[str, Any]:
    return certificate.model_dump(mode="json")
