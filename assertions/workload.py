"""The seeded input: which rows are written, in which transactions, to which partitions and offsets.

Everything here is computed, nothing is read: the plan of a workload follows from its arguments alone.

How batches are cut. Spark's ``maxOffsetsPerTrigger`` counts *offsets*, so aborted records and the control marker that
ends a transaction in a partition count too, and it shares them out in proportion to what each partition still holds
(``KafkaMicroBatchStream.rateLimit``, simulated by :meth:`Workload.batch_bounds`). The layout makes every partition
equally long, so that each batch takes one *window* of each, and each window is two cycles of the same length::

    cycle:   c visible, marker, a aborted, marker        c + a + 2 offsets
    window:  cycle, cycle                                one partition's share of a batch

Batches differ in size all the same, because the aborted records fill what the visible ones leave. By ``rows``:

========= ==========================================================================================
batch 0   half as many
batch 1   as many
batch 2   eight times as many, so that a sink that writes in pieces writes several of them: of the default's 1728
          rows a task has 576, more than the usual 500, and a whole batch more than 1000
quiet     as many in each partition, but partition 1 has aborted records only: a task without rows
the last  of four and more batches a single row
others    twice as many, or a quarter
========= ==========================================================================================

The quiet stretch (in batch 3, where there are as many) goes on through the first cycle of the next window, and every
window ends with aborted records, so that a cut that falls a few offsets off the plan leaves that batch as it is. The
last cycle is a little shorter: the last batch takes all the rest, and no tiny one follows.

The rows are unkind on purpose, so that no sink looks right because its input was easy: ids are not in the order of
writing, event times are late by up to 100 s, some by 40 days besides, and rows with different ids may have the same
time, the same key and value, or everything in common. A key has many events, in several batches, but always in one
partition. Of four and more batches, two keys have two events each: the last one's only row is a millisecond newer than
its key's other one, which is two batches back, and a row of the last but one a millisecond older than the one before
it: who compares whole seconds keeps the wrong one. Texts are empty, long or not ASCII. Against false alarms nothing is
null, values are multiples of 1/8, times whole milliseconds, no text holds a control character, and each id, however
large, is exact as a double.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from .tables import ACK_SCHEMA, ROW_SCHEMA

CYCLES = 2
"""Cycles of one committed and one aborted transaction in each window."""

QUIET_PARTITION = 1

LARGE_BATCH = 2

EPOCH = datetime(2026, 1, 1)

CUSTOMERS = ("Åsa", "Łukasz", "Zoë", "O'Neil", "李雷", "Søren, Jr.", 'Ana "Nana" Cruz', "Ивáн")

NUMBERS = 4
"""Keys of a customer in each partition."""

SMALL_IDS = 10**6

LARGE_IDS = 2**62

LATE = 400
"""An event is late by less than so many ticks of 250 ms; one tick passes in sixteen records."""

DAYS_LATE = timedelta(days=40)
"""One of 32 is late by so much besides: who looks back for an hour, or at the days of a batch, does not find it."""

MILLISECOND = timedelta(milliseconds=1)

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

    ``partitions`` of the source topic; ``batches`` that the job is to cut; ``rows``: visible rows of batch 1 (rounded
    up to fill each partition and cycle evenly), by which the other batches are measured: see the module's table.

    >>> workload = Workload(seed=7)
    >>> workload.max_offsets_per_trigger, len(workload.batch_bounds())
    (2083, 5)

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

    @cached_property
    def _largest(self) -> int:
        """Visible rows of the fullest cycle of all."""
        return max(self._full(batch) for batch in range(self.batches))

    @property
    def aborted_per_cycle(self) -> int:
        """So many at least: where fewer rows are visible, more are aborted."""
        return max(1, self._largest // 5)

    @property
    def _cycle(self) -> int:
        """Offsets of a cycle in each partition, markers included."""
        return self._largest + self.aborted_per_cycle + 2

    @property
    def window(self) -> int:
        """Offsets that a batch takes of each partition, markers included."""
        return CYCLES * self._cycle

    @property
    def max_offsets_per_trigger(self) -> int:
        """Spark's ``maxOffsetsPerTrigger``. Half an offset more than a window for each partition: each share is
        rounded down, and so stays one window in spite of the error of the floating-point division."""
        return self.window * self.partitions + self.partitions // 2

    @property
    def quiet_batch(self) -> int | None:
        """The batch in which one partition has aborted records only; None if there is but one batch or partition."""
        return min(3, self.batches - 1) if min(self.batches, self.partitions) > 1 else None

    @property
    def single_batch(self) -> int | None:
        """The batch of a single row, the last; None where there are fewer than four batches."""
        return self.batches - 1 if self.batches > 3 else None

    @property
    def pairs(self) -> Mapping[int, tuple[int, timedelta]]:
        """The cycles in which a pair's events are, each with the pair's number and how far it is from its middle."""
        if self.single_batch is None:
            return {}
        first = (self.single_batch - 2) * CYCLES
        none = timedelta()
        return {
            first: (0, none),
            first + 1: (1, none),
            first + CYCLES + 1: (1, -MILLISECOND),
            first + 2 * CYCLES: (0, MILLISECOND),
        }

    def transactions(self) -> Iterator[Transaction]:
        """The transactions in the order of writing. Ids are unique over all rows, the aborted ones included."""
        rows, pairs = _Rows(self.seed, self.partitions), _Pairs(self)
        for cycle in range(self.batches * CYCLES):
            if cycle == min(1, self.batches - 1) * CYCLES:
                rows.next_id_is_zero()
            visible = {p: self._visible(cycle, p) for p in range(self.partitions)}
            if any(visible.values()):
                yield pairs.put(cycle, _transaction(True, visible, rows.next))
            yield _transaction(False, {p: self._aborted(cycle, count) for p, count in visible.items()}, rows.next)

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
        return (self.batches * self.window - self._shorter,) * self.partitions

    @property
    def _shorter(self) -> int:
        """Offsets that the last cycle lacks."""
        return (self.aborted_per_cycle - 1) // 2

    def _full(self, batch: int) -> int:
        """Visible rows of each partition in each cycle of a batch, but for the single and the quiet ones."""
        return math.ceil(self.rows * self._factor(batch) / (self.partitions * CYCLES))

    def _factor(self, batch: int) -> float:
        if batch == 0 and self.batches > 1:
            return 0.5
        if batch in (0, 1, self.quiet_batch):
            return 1
        if batch == LARGE_BATCH:
            return 8
        return 2 if batch % 2 == 0 else 0.25

    def _visible(self, cycle: int, partition: int) -> int:
        if cycle // CYCLES == self.single_batch:
            return int(partition == 0 and cycle % CYCLES == 0)
        return 0 if partition == QUIET_PARTITION and self._is_quiet(cycle) else self._full(cycle // CYCLES)

    def _aborted(self, cycle: int, visible: int) -> int:
        """What fills a cycle in a partition. A transaction leaves no marker where it did not write."""
        last = cycle == self.batches * CYCLES - 1
        return self._cycle - visible - (2 if visible else 1) - (self._shorter if last else 0)

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


def committed_rows(workload: Workload) -> pa.Table:
    """The rows of committed transactions (ROW_SCHEMA), each once, in the order of writing."""
    rows = [row for txn in workload.transactions() if txn.commit for _, row in txn.records]
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), ROW_SCHEMA, strict=True)]
    return pa.table(columns, ROW_SCHEMA)


def encode(row: Row) -> bytes:
    """The value of a Kafka record: a JSON object in UTF-8, event_time as ISO 8601 with milliseconds and Z."""
    time = row.event_time.isoformat(timespec="milliseconds") + "Z"
    return json.dumps(row._asdict() | {"event_time": time}, ensure_ascii=False).encode()


def _transaction(commit: bool, counts: Mapping[int, int], row_of: Callable[[int], Row]) -> Transaction:
    """``counts[partition]`` records each, the partitions taking turns."""
    turns = range(max(counts.values()))
    order = [partition for turn in turns for partition, count in counts.items() if turn < count]
    return Transaction(commit, tuple((partition, row_of(partition)) for partition in order))


class _Pairs:
    """Puts two events of one key into two batches: the cycles say which, and how far apart they are."""

    def __init__(self, workload: Workload) -> None:
        self._partitions = workload.partitions
        self._cycles = workload.pairs
        self._middle: dict[int, datetime] = {}

    def put(self, cycle: int, transaction: Transaction) -> Transaction:
        """The same, but that partition 0's last row is one of a pair, if the cycle has one."""
        if cycle not in self._cycles:
            return transaction
        pair, apart = self._cycles[cycle]
        records = list(transaction.records)
        at = max(place for place, (partition, _) in enumerate(records) if partition == 0)
        row = records[at][1]
        middle = self._middle.setdefault(pair, row.event_time.replace(microsecond=500_000))
        key = f"{CUSTOMERS[pair]}-{self._partitions * NUMBERS}"
        records[at] = 0, row._replace(key=key, event_time=middle + apart)
        return replace(transaction, records=tuple(records))


class _Rows:
    """Endless rows. Only ``random()`` is drawn from: of all methods, its sequence alone is promised to stay the same
    from one Python version to the next."""

    def __init__(self, seed: int, partitions: int) -> None:
        self._draw = random.Random(f"onceproof {seed}").random
        self._partitions = partitions
        self._number = 0
        self._ids = {0}
        self._last: dict[int, Row] = {}
        self._zero = False

    def next_id_is_zero(self) -> None:
        self._zero = True

    def next(self, partition: int) -> Row:
        """The next row of a partition. Every sixteenth repeats the one before it there, under an id of its own."""
        again = self._last.get(partition) if self._one_in(16) else None
        row = again._replace(id=self._id()) if again else self._new(partition)
        self._number += 1
        self._last[partition] = row
        return row

    def _new(self, partition: int) -> Row:
        return Row(self._id(), self._key(partition), self._value(), self._time(), self._payload())

    def _id(self) -> int:
        if self._zero:
            self._zero = False
            return 0
        found = 0
        while found in self._ids:
            found = self._below(LARGE_IDS if self._one_in(16) else SMALL_IDS)
        self._ids.add(found)
        return found

    def _key(self, partition: int) -> str:
        """The number is the partition's own, modulo their count."""
        customer = CUSTOMERS[self._below(len(CUSTOMERS))]
        return f"{customer}-{partition + self._partitions * self._below(NUMBERS)}"

    def _value(self) -> float:
        """Mostly one of few around zero, so that a key meets it again."""
        spread = 160_000 if self._one_in(4) else 16
        return (self._below(spread + 1) - spread // 2) / 8

    def _time(self) -> datetime:
        tick = self._number // 16 - self._below(LATE)
        time = EPOCH + timedelta(milliseconds=tick * 250 + (self._below(250) if self._one_in(4) else 0))
        return time - DAYS_LATE if self._number % 32 == 17 else time

    def _payload(self) -> str:
        if self._one_in(16):
            return ""
        phrase = PHRASES[self._below(len(PHRASES))]
        if self._one_in(32):
            return " / ".join([phrase] * (200 + self._below(200)))
        return phrase if self._one_in(8) else f"{phrase} #{self._below(1_000_000):06d}"

    def _below(self, end: int) -> int:
        return int(self._draw() * end)

    def _one_in(self, count: int) -> bool:
        return self._draw() * count < 1
