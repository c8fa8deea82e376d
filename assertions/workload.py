"""The seeded input: which rows are written, in which transactions, to which partitions and offsets.

Everything here is computed, nothing is read: the plan of a workload and the ground truth follow from the seed alone.

How batches are cut. Spark's ``maxOffsetsPerTrigger`` counts *offsets*, so aborted records and the control marker that
ends a transaction in a partition count too, and it shares them out in proportion to what each partition still holds
(``KafkaMicroBatchStream.rateLimit``, simulated by :meth:`Workload.batch_bounds`). The layout makes every partition
equally long, so that each batch takes one *window* of each, and each window is two cycles::

    cycle:   c visible, marker, a aborted, marker        c + a + 2 offsets
    window:  cycle, cycle                                one partition's share of a batch

In the *quiet* batch (number 3, where there are as many) partition 1 has aborted records only: a task without rows. The
stretch goes on through the first cycle of the next window, and every window ends with aborted records, so that a cut
that falls a few offsets beside the plan leaves that batch as it is. The last cycle is a little shorter: the last batch
takes all the rest, and no tiny one follows.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from .model import ACK_SCHEMA, ROW_SCHEMA

CYCLES = 2
"""Cycles of one committed and one aborted transaction in each window."""

QUIET_PARTITION = 1

EPOCH = datetime(2026, 1, 1)

CUSTOMERS = ("Åsa", "Łukasz", "Zoë", "O'Neil", "李雷", "Søren, Jr.", 'Ana "Nana" Cruz', "Ивáн")

PHRASES = ("paid, in full", 'said "yes"', "naïve café", "it's late", "半分", "50 % off", "a;b|c\\d", "fin 🙂")


class Row(NamedTuple):
    """A row under test. ``event_time`` is UTC without a zone, in whole milliseconds; ``value`` a multiple of 1/8."""

    id: int
    key: str
    value: float
    event_time: datetime
    payload: str


@dataclass(frozen=True)
class Transaction:
    """Records of one Kafka transaction in the order of writing, each with its partition, and how it ends."""

    commit: bool
    records: tuple[tuple[int, Row], ...]


@dataclass(frozen=True)
class Workload:
    """A deterministic input: the same arguments give the same rows, transactions and batches.

    ``partitions`` of the source topic; ``batches`` that the job is to cut; ``rows``: visible rows of a full batch
    (rounded up to fill each partition and cycle evenly; the quiet batch has the share of one partition less).

    >>> workload = Workload(seed=7)
    >>> workload.max_offsets_per_trigger, len(workload.batch_bounds())
    (271, 5)

    Raises ValueError, one line naming the argument, its value and what would be valid.
    """

    seed: int = 1
    partitions: int = 3
    batches: int = 5
    rows: int = 216

    def __post_init__(self) -> None:
        for name in ("partitions", "batches", "rows"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"workload: {name} is {value!r}, but must be a whole number of at least 1")

    def as_json(self) -> dict[str, int]:
        """The arguments and what the job needs of them."""
        sizes = {"seed": self.seed, "partitions": self.partitions, "batches": self.batches, "rows": self.rows}
        return sizes | {"max_offsets_per_trigger": self.max_offsets_per_trigger}

    @property
    def visible_per_cycle(self) -> int:
        return math.ceil(self.rows / (self.partitions * CYCLES))

    @property
    def aborted_per_cycle(self) -> int:
        return max(1, self.visible_per_cycle // 5)

    @property
    def window(self) -> int:
        """Offsets that a full batch takes of each partition, markers included."""
        return CYCLES * (self.visible_per_cycle + self.aborted_per_cycle + 2)

    @property
    def max_offsets_per_trigger(self) -> int:
        """Spark's ``maxOffsetsPerTrigger``. Half an offset more than a window for each partition: each share is
        rounded down, and so stays one window in spite of the error of the floating-point division."""
        return self.window * self.partitions + self.partitions // 2

    @property
    def quiet_batch(self) -> int | None:
        """The batch in which one partition has aborted records only; None if there is but one batch or partition."""
        return min(3, self.batches - 1) if min(self.batches, self.partitions) > 1 else None

    def transactions(self) -> Iterator[Transaction]:
        """The transactions in the order of writing; ids count up from 0 over all rows, the aborted ones included."""
        rows = _rows(self.seed)
        for cycle in range(self.batches * CYCLES):
            quiet = self._is_quiet(cycle)
            visible, aborted = self._visible(cycle), self.aborted_per_cycle
            loud = [p for p in range(self.partitions) if not (quiet and p == QUIET_PARTITION)]
            yield _transaction(True, dict.fromkeys(loud, visible), rows)
            # A transaction leaves no marker in a partition it did not write to: one more record makes up for it.
            fill = {QUIET_PARTITION: visible + 1 + aborted} if quiet else {}
            yield _transaction(False, dict.fromkeys(range(self.partitions), aborted) | fill, rows)

    def batch_bounds(self) -> dict[int, dict[int, tuple[int, int]]]:
        """``{batch: {partition: (first offset, end offset)}}`` as Spark will cut them, from offset 0 of each."""
        ends = dict(enumerate(self._ends))
        bounds: dict[int, dict[int, tuple[int, int]]] = {}
        at = dict.fromkeys(ends, 0)
        while at != ends:
            until = rate_limit(self.max_offsets_per_trigger, at, ends)
            bounds[len(bounds)] = {p: (at[p], until[p]) for p in ends}
            at = until
        return bounds

    def planned_acks(self) -> pa.Table:
        """Where each record will be (ACK_SCHEMA), on new partitions that nobody else writes to."""
        return pa.Table.from_pylist(list(self._placed()), schema=ACK_SCHEMA)

    def _placed(self) -> Iterator[Mapping[str, Any]]:
        at = [0] * self.partitions
        for transaction in self.transactions():
            for partition, row in transaction.records:
                yield {"id": row.id, "partition": partition, "offset": at[partition], "committed": transaction.commit}
                at[partition] += 1
            for partition in {partition for partition, _ in transaction.records}:
                at[partition] += 1

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        cycle = self.visible_per_cycle + self.aborted_per_cycle + 2
        shorter = self.visible_per_cycle - self._visible(self.batches * CYCLES - 1)
        return (self.batches * CYCLES * cycle - shorter,) * self.partitions

    def _visible(self, cycle: int) -> int:
        last = cycle == self.batches * CYCLES - 1
        return self.visible_per_cycle - (self.visible_per_cycle // 10 if last else 0)

    def _is_quiet(self, cycle: int) -> bool:
        if self.quiet_batch is None:
            return False
        first = self.quiet_batch * CYCLES
        return first <= cycle <= first + CYCLES


def rate_limit(limit: int, begin: Mapping[int, int], end: Mapping[int, int]) -> dict[int, int]:
    """Where a batch ends in each partition: ``KafkaMicroBatchStream.rateLimit`` of Spark 4, in the same arithmetic."""
    sizes = {p: end[p] - begin[p] for p in end if end[p] > begin[p]}
    total = float(sum(sizes.values()))
    until = dict(end)
    for partition, size in sizes.items():
        prorate = limit * (size / total)
        share = math.ceil(prorate) if prorate < 1 else math.floor(prorate)
        until[partition] = min(end[partition], begin[partition] + share)
    return until


def truth(workload: Workload) -> pa.Table:
    """The ground truth (ROW_SCHEMA): the rows of committed transactions, each once, from the seed alone."""
    rows = [row for txn in workload.transactions() if txn.commit for _, row in txn.records]
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), ROW_SCHEMA, strict=True)]
    return pa.table(columns, ROW_SCHEMA)


def encode(row: Row) -> bytes:
    """The value of a Kafka record: a JSON object in UTF-8, event_time as ISO 8601 with milliseconds and Z."""
    time = row.event_time.isoformat(timespec="milliseconds") + "Z"
    return json.dumps(row._asdict() | {"event_time": time}, ensure_ascii=False).encode()


def _transaction(commit: bool, counts: Mapping[int, int], rows: Iterator[Row]) -> Transaction:
    """``counts[partition]`` records each, the partitions taking turns."""
    turns = range(max(counts.values()))
    order = [partition for turn in turns for partition, count in counts.items() if turn < count]
    return Transaction(commit, tuple((partition, next(rows)) for partition in order))


def _rows(seed: int) -> Iterator[Row]:
    """Endless rows. Only ``random()`` is drawn from: of all methods, its sequence alone is promised to stay the same
    from one Python version to the next."""
    draw = random.Random(f"onceproof {seed}").random
    row = 0
    while True:
        customer = CUSTOMERS[int(draw() * len(CUSTOMERS))]
        yield Row(
            id=row,
            key=f"{customer}-{int(draw() * 1000)}",
            value=int(draw() * 160_000 - 80_000) / 8,
            event_time=EPOCH + timedelta(milliseconds=row * 250 + int(draw() * 250)),
            payload=f"{PHRASES[int(draw() * len(PHRASES))]} #{int(draw() * 1_000_000):06d}",
        )
        row += 1
