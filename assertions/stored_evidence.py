"""``evidence.json``: what of the evidence is no table, as its file holds it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, TypeAdapter, field_validator

from ..documents import CLOSED
from .model import Evidence, Expectation, FaultRecord, Glimpse, Guarantee, Open, Settlement
from .workload import Workload

VERSION = 2
"""Of the layout; a run of another version is refused."""


class StoredReading(BaseModel):
    """``rows``: whether the reading succeeded, and its rows are in a file of their own."""

    model_config = CLOSED

    rows: bool
    error: str | None


class StoredGlimpse(BaseModel):
    """A reading while the job was under way, see :class:`.model.Glimpse`; ``rows`` as of :class:`StoredReading`."""

    model_config = CLOSED

    number: int
    event_index: int
    committed: int | None
    handed_over: int | None
    rows: bool
    opened: tuple[Open, ...]
    error: str | None
    at: str


class StoredEvidence(BaseModel):
    """The fields are those of :class:`.model.Evidence`."""

    model_config = CLOSED

    version: int
    claim: Guarantee
    workload: Workload
    expectation: Expectation
    batches: dict[int, dict[int, tuple[int, int]]]
    readings: tuple[StoredReading, ...]
    settlement: Settlement
    faults: tuple[FaultRecord, ...]
    stuck: str | None
    glimpses: tuple[StoredGlimpse, ...] = ()
    atomic: bool = False
    readable: bool = False
    watermarks: dict[int, int] = {}
    broken: tuple[str, ...] = ()
    raw: dict[str, int] = {}

    @field_validator("version")
    @classmethod
    def _this_version(cls, version: int) -> int:
        if version != VERSION:
            raise ValueError(f"this is for version {VERSION}")
        return version


STORED_EVIDENCE = TypeAdapter(StoredEvidence)


def stored(evidence: Evidence) -> StoredEvidence:
    return StoredEvidence(
        version=VERSION,
        readings=tuple(StoredReading(rows=one.rows is not None, error=one.error) for one in evidence.readings),
        glimpses=tuple(map(_glimpse, evidence.glimpses)),
        **{name: getattr(evidence, name) for name in SAME},
    )


SAME = StoredEvidence.model_fields.keys() - {"version", "readings", "glimpses"}
"""The fields that are stored as they are."""


def _glimpse(glimpse: Glimpse) -> StoredGlimpse:
    fields: dict[str, Any] = {**vars(glimpse), "rows": glimpse.rows is not None}
    return StoredGlimpse(**fields)
