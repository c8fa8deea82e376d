"""The data of a judgement: what was asked of the job, what was seen, what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pyarrow as pa

Event = Mapping[str, Any]
"""One line of the journal: docs/journal.md has the kinds and their fields."""


class Outcome(StrEnum):
    """The lattice of verdicts: fail outranks inconclusive outranks pass."""

    PASS = "pass"
    INCONCLUSIVE = "inconclusive"
    FAIL = "fail"


class Guarantee(StrEnum):
    """What a reader may rely on. Exactly-once satisfies every claim; the next two are incomparable."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"
    AT_MOST_ONCE = "at-most-once"
    NONE = "none"


ROW_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("key", pa.string()),
        ("value", pa.float64()),
        ("event_time", pa.timestamp("us")),
        ("payload", pa.string()),
    ]
)
"""Rows under test: event_time is UTC without a zone. Truth and readings are Arrow tables of this schema."""

ACK_SCHEMA = pa.schema(
    [("id", pa.int64()), ("partition", pa.int32()), ("offset", pa.int64()), ("committed", pa.bool_())]
)
"""Each record of the workload with the broker's acknowledged place; committed is False in an aborted transaction."""


@dataclass(frozen=True)
class Reading:
    """What a downstream reader saw: rows of ROW_SCHEMA, or the error that the reading ended in."""

    rows: pa.Table | None
    error: str | None = None


@dataclass(frozen=True)
class Open:
    """A transaction still open at the settling's deadline: it blocks readers (read_committed) or holds locks."""

    kind: str
    """``kafka`` or ``postgres``"""
    name: str
    """transactional id or gid"""
    state: str
    detail: str = ""


@dataclass(frozen=True)
class Settlement:
    """How the trial came to rest. ``unmet`` names each condition that did not hold at the deadline, in words."""

    input_committed: bool
    unmet: Sequence[str] = ()
    hanging: Sequence[Open] = ()


@dataclass(frozen=True)
class Evidence:
    """All that a verdict is made of; stored in the run directory, so that it can be judged again.

    ``batches`` maps a batch id to ``{partition: (first offset, end offset)}`` from the checkpoint's offset log.
    ``faults`` are the plan's, in order: text and what they require, see :class:`FaultRecord`.
    """

    claim: Guarantee
    truth: pa.Table
    acks: pa.Table
    batches: Mapping[int, Mapping[int, tuple[int, int]]]
    journal: Sequence[Event]
    readings: Sequence[Reading]
    settlement: Settlement
    faults: Sequence[FaultRecord] = ()
    stuck: str | None = None
    """The exception (one line) at which the job stays stuck after a fault fired, else None."""


@dataclass(frozen=True)
class FaultRecord:
    """A fault of the plan as the judge needs it: its text, and for each action its name and target.

    ``phase`` and ``edge`` are those of its selector (``line``, None for a line; ``at``, None for a moment).
    """

    text: str
    phase: str
    edge: str | None
    actions: Sequence[tuple[str, str | None]]


@dataclass(frozen=True)
class Anomaly:
    """One kind of anomaly with its records.

    ``count`` is in records (duplicated: superfluous copies). ``records`` are the first few, each with id, batch,
    partition and offset where known, and what was expected or seen. ``causes`` are sentences from the journal.
    """

    kind: str
    count: int
    records: Sequence[Mapping[str, Any]] = ()
    batches: Sequence[int] = ()
    partitions: Sequence[int] = ()
    causes: Sequence[str] = ()


@dataclass(frozen=True)
class FaultReport:
    """What became of a fault; ``replay`` has ``required`` and ``seen``, both sentences or None."""

    text: str
    reached: bool
    fired: bool
    confirmed: bool
    process: str | None
    replay: Mapping[str, str | None] = field(default_factory=dict)
    error: str | None = None
    swallowed: bool | None = None


@dataclass(frozen=True)
class Verdict:
    """The judgement: ``outcome`` says whether ``claim`` held; ``exactly_once`` says the same of exactly-once."""

    outcome: Outcome
    exactly_once: Outcome
    guarantee: Guarantee | None
    claim: Guarantee
    reason: str
    anomalies: Sequence[Anomaly] = ()
    faults: Sequence[FaultReport] = ()
    records: Mapping[str, Any] = field(default_factory=dict)
    attempts: Sequence[Mapping[str, Any]] = ()
