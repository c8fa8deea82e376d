"""The data of a judgement: what was asked of the job, what was seen, what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pyarrow as pa

from ..plans import Action, Fault, Point
from ..requirements import Requirement, Step
from .tables import JobInput
from .workload import Workload

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


@dataclass(frozen=True)
class Expectation:
    """What must come out: ``sql``, a SELECT of DuckDB over the table ``input`` (see :mod:`.truth`), and ``key``, the
    columns that tell the rows of its result apart.

    ``latest``: the columns by which a sink keeps one version of each key, its own KEY or the job's: the last arrival,
    or the one with the greatest ``order``.
    """

    sql: str = "SELECT * FROM input"
    key: tuple[str, ...] = ("id",)
    latest: tuple[str, ...] | None = None
    order: str | None = None

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that tell the rows of the truth apart."""
        return self.latest or self.key


@dataclass(frozen=True)
class Reading:
    """What a downstream reader saw: rows with the truth's columns, or the error that the reading ended in."""

    rows: pa.Table | None
    error: str | None = None


@dataclass(frozen=True)
class Open:
    """A transaction still open at the settling's deadline: it blocks readers (read_committed) or holds locks."""

    kind: str
    """that of the target, as a sink names it in SERVICES"""
    name: str
    """transactional id or gid"""
    state: str
    detail: str = ""
    holds_up: str = "it holds others up"
    """what it does to others for as long as it is open"""
    age: float | None = field(default=None, compare=False)
    """seconds since it began, where the service tells"""
    timeout: float | None = field(default=None, compare=False)
    """seconds after which the service aborts it; None: never, or not any more"""


@dataclass(frozen=True)
class Glimpse:
    """What a reader saw while the job was under way: its stream parked at a point, or its driver dead.

    ``event_index`` is the place of the reading's event in the journal. ``committed`` is the last batch that the engine
    had recorded as done, ``handed_over`` the last one that the sink had been given; None: no batch yet. ``opened`` are
    the transactions that were open or prepared then. ``at`` says where the job was, in words.
    """

    number: int
    event_index: int
    committed: int | None
    handed_over: int | None
    rows: pa.Table | None
    opened: tuple[Open, ...] = ()
    error: str | None = None
    at: str = ""


@dataclass(frozen=True)
class Settlement:
    """How the trial came to rest. ``unmet`` names each condition that did not hold at the deadline, in words.

    ``timed_out`` are transactions that were open at the deadline, and that their service aborted soon after it.
    """

    input_committed: bool
    unmet: Sequence[str] = ()
    hanging: Sequence[Open] = ()
    timed_out: Sequence[Open] = ()


@dataclass(frozen=True)
class Evidence:
    """All that a verdict is made of; stored in the run directory, so that it can be judged again.

    ``batches`` maps a batch id to ``{partition: (first offset, end offset)}`` from the checkpoint's offset log.
    ``faults`` are the plan's, in order: text and what they require, see :class:`FaultRecord`. ``given`` are
    the tables that the expectation is computed over; they follow from ``workload``, ``acks``, ``batches`` and
    ``watermarks``. ``truth`` follows from expectation and tables. Readings have the columns of ``truth``.
    """

    claim: Guarantee
    workload: Workload
    expectation: Expectation
    given: JobInput
    truth: pa.Table
    acks: pa.Table
    batches: Mapping[int, Mapping[int, tuple[int, int]]]
    journal: Sequence[Event]
    readings: Sequence[Reading]
    settlement: Settlement
    faults: Sequence[FaultRecord] = ()
    stuck: str | None = None
    """The exception (one line) at which the job stays stuck after a fault fired, else None."""
    glimpses: Sequence[Glimpse] = ()
    """Readings while the job was under way, in their order."""
    atomic: bool = False
    """Whether the sink says that a reader never sees part of a batch."""
    readable: bool = False
    """Whether a run of the same sink without a fault could be read to its end."""
    watermarks: Mapping[int, int] = field(default_factory=dict)
    """The watermark of each planned batch, in milliseconds since 1970, from the checkpoint's offset log."""
    broken: Sequence[str] = ()
    """Parts of the environment that failed by themselves, one line each."""
    raw: Mapping[str, int] = field(default_factory=dict)
    """Rows by their place in the target, as they lie there and not as ``read`` gives them."""


@dataclass(frozen=True)
class ActionRecord:
    """An action of a fault: its text (without what it waits for) and what it must leave behind.

    Without ``requirements`` it only sets how another action of its fault goes on, and is not confirmed by itself.
    ``runs_on``: what it ends goes on until it is dead, so that it may get further than the point at which it was
    struck; what is required is then that of its last report.
    """

    text: str
    action: Action
    requirements: tuple[Requirement, ...] = ()
    runs_on: bool = False


@dataclass(frozen=True)
class FaultRecord:
    """A fault of the plan as the judge needs it: its text and that of its selector, and its actions in their order.

    Raises ValueError if nothing is required of any of its actions: nothing is no evidence.
    """

    text: str
    place: str
    fault: Fault
    actions: tuple[ActionRecord, ...]

    def __post_init__(self) -> None:
        if not any(record.requirements for record in self.actions):
            raise ValueError(f"fault {self.text!r} must leave nothing behind: each action has to declare what it must")

    @property
    def step(self) -> Step | None:
        """Phase and edge of its selector; None for a moment."""
        at = self.fault.at
        return (at.phase, at.edge) if isinstance(at, Point) else None


@dataclass(frozen=True)
class Anomaly:
    """One kind of anomaly with its records.

    ``count`` is in records (duplicated: superfluous copies). ``records`` are the first few, each with id, batch,
    partition and offset where known, and what was expected or seen. ``causes`` are sentences from the journal.
    ``like`` is the kind whose guarantee it leaves, where it leaves another one than its own kind does.
    """

    kind: str
    count: int
    records: Sequence[Mapping[str, Any]] = ()
    batches: Sequence[int] = ()
    partitions: Sequence[int] = ()
    causes: Sequence[str] = ()
    like: str | None = None


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
    notes: Sequence[str] = ()
    """what else was seen: it breaks nothing"""
