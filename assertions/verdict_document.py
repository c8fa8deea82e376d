"""A verdict as JSON: what a trial's document begins with."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, WithJsonSchema
from pydantic.config import JsonDict

from ..documents import CLOSED
from .checkers import checkers
from .model import Anomaly, FaultReport, Verdict

OutcomeName = Literal["pass", "fail", "inconclusive"]
GuaranteeName = Literal["exactly-once", "at-least-once", "at-most-once", "none"]
ClaimName = Literal["exactly-once", "at-least-once", "at-most-once"]


def _known(kind: str) -> str:
    if kind not in checkers():
        raise ValueError(f"no checker finds this kind: there are {', '.join(checkers())}")
    return kind


KINDS: JsonDict = {"enum": list(checkers())}
Kind = Annotated[str, AfterValidator(_known), WithJsonSchema(KINDS)]
"""A kind of anomaly: the name of its checker."""

Number = Annotated[int, Field(ge=0)]
Place = Annotated[str | None, Field(description="place:pid")]


class AnomalyDetails(BaseModel):
    model_config = CLOSED

    kind: Kind
    count: int = Field(ge=1, description="rows; duplicated: copies beyond the first; hanging: transactions")
    records: list[Annotated[dict[str, Any], Field(min_length=1)]] = Field(
        description="the first ten of them: id, batch, partition and offset of the input where known, "
        "what was expected, what was seen"
    )
    batches: list[Number]
    partitions: list[Number]
    causes: list[str] = Field(description="sentences that the journal supports")


class HandOverSeen(BaseModel):
    """A hand-over of a batch to the sink."""

    model_config = CLOSED

    batch: Number
    run: str | None = Field(description="run id of the query")
    process: Place
    offsets: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = Field(
        description="sha256 of the checkpoint's offsets/N at the hand-over"
    )
    written: bool = Field(description="whether the hand-over was seen to end")
    committed: bool = Field(description="whether the batch was seen in the commit log")


class TaskAttemptSeen(BaseModel):
    """An attempt of a task beyond its first."""

    model_config = CLOSED

    batch: int | None
    partition: int | None
    attempt: int = Field(ge=1)
    process: Place


class Records(BaseModel):
    model_config = CLOSED

    expected: int = Field(ge=0, description="rows of the ground truth")
    seen: int = Field(ge=0, description="rows that the last reading saw")
    written: int = Field(ge=0, description="records of the input")
    aborted: int = Field(ge=0, description="those of them in aborted transactions")
    batch_sizes: dict[Annotated[str, Field(pattern="^[0-9]+$")], Number] = Field(description="visible rows by batch")


class EvidenceSeen(BaseModel):
    model_config = CLOSED

    records: Records
    attempts: list[HandOverSeen | TaskAttemptSeen] = Field(
        description="each hand-over of a batch, and each attempt of a task beyond its first"
    )


class FaultSeen(BaseModel):
    model_config = CLOSED

    text: str = Field(description="the fault in the plan language")
    reached: bool
    fired: bool
    confirmed: bool = Field(description="whether its effect was confirmed")
    process: str | None = Field(description="the process that stood at the point, place:pid")
    replay: dict[Literal["required", "seen"], str | None] = Field(
        description="what the fault must leave behind in the journal, and what it left behind; null: missing"
    )
    error: str | None = Field(description="why the fault could not be carried out")
    swallowed: bool | None = Field(description="of an error: whether the sink went on as if nothing had been")


class VerdictDocument(BaseModel):
    """A verdict, without what its trial was made of."""

    model_config = CLOSED

    verdict: OutcomeName = Field(description="whether the claim held")
    exactly_once: OutcomeName = Field(description="the same judgement for the claim exactly-once")
    guarantee: GuaranteeName | None = Field(description="what was observed; null where the verdict is inconclusive")
    claim: ClaimName = Field(description="what was judged")
    reason: str = Field(description="the verdict in words")
    anomalies: dict[Kind, Annotated[int, Field(ge=1)]] = Field(
        description="kind to count", json_schema_extra={"propertyNames": KINDS}
    )
    anomaly_details: list[AnomalyDetails]
    evidence: EvidenceSeen
    faults: list[FaultSeen] = Field(description="those of the plan, in order")
    notes: list[str] = Field(description="what else was seen: it breaks nothing that the sink claims")


def verdict_as_json(verdict: Verdict) -> dict[str, Any]:
    """The verdict as one JSON object, see :class:`VerdictDocument`."""
    return verdict_document(verdict).model_dump(mode="json")


def verdict_document(verdict: Verdict) -> VerdictDocument:
    sizes = {str(batch): size for batch, size in verdict.records.get("batch_sizes", {}).items()}
    return VerdictDocument.model_validate(
        {
            "verdict": verdict.outcome.value,
            "exactly_once": verdict.exactly_once.value,
            "guarantee": verdict.guarantee.value if verdict.guarantee else None,
            "claim": verdict.claim.value,
            "reason": verdict.reason,
            "anomalies": {anomaly.kind: anomaly.count for anomaly in verdict.anomalies},
            "anomaly_details": [_details(anomaly) for anomaly in verdict.anomalies],
            "evidence": {"records": {**verdict.records, "batch_sizes": sizes}, "attempts": list(verdict.attempts)},
            "faults": [_fault(fault) for fault in verdict.faults],
            "notes": list(verdict.notes),
        }
    )


def _details(anomaly: Anomaly) -> dict[str, Any]:
    return {name: value for name, value in vars(anomaly).items() if name != "like"}


def _fault(report: FaultReport) -> dict[str, Any]:
    return dict(vars(report))
