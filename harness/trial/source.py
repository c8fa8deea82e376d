"""Writes a workload to its source topic, in transactions, and keeps the broker's acknowledged place of each record."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import pyarrow as pa
from confluent_kafka import KafkaException, Message, Producer

from ...assertions import ACK_SCHEMA, Row, Transaction, Workload, encode
from ..errors import ObservationError
from ..kafka_topics import read_topic
from ..kafka_transactions import open_transactions
from ..runtime.waiting import WaitTimeout, wait_for

T = TypeVar("T")


class SourceError(Exception):
    """The workload could not be written; one line saying what the broker or the deadline had against it."""


def write_workload(bootstrap: str, topic: str, workload: Workload, timeout: float = 60.0) -> pa.Table:
    """Write every transaction of ``workload``, committing and aborting as planned; returns the places (ACK_SCHEMA).

    ``topic`` must have the workload's number of partitions. The whole must end within ``timeout`` seconds.
    A single producer writes, one transaction after the other: a partition then holds records and control markers in
    exactly the planned order, since the broker lets a producer into a partition only once its last marker is written.
    Raises SourceError, also where what can be read then is not what was committed.
    """
    writer = _Writer(bootstrap, topic, timeout)
    for transaction in workload.transactions():
        writer.write(transaction)
    check_as_planned(bootstrap, topic, writer.acks)
    return pa.Table.from_pylist(writer.acks, schema=ACK_SCHEMA)


def check_as_planned(bootstrap: str, topic: str, acks: Sequence[Mapping[str, object]], timeout: float = 30.0) -> None:
    """Raise SourceError if readers of committed records see others than those that were to be committed.

    With a producer of version 1, a request to commit that comes twice may commit the next transaction, which was to be
    aborted (KIP-890). Where a plan strikes the brokers, they may not answer, and nothing can be said.
    """
    try:
        await_end(bootstrap, topic, timeout)
        found = read_topic(bootstrap, topic, "read_committed", timeout)
    except (SourceError, ObservationError):
        return
    seen = {(record.partition, record.offset) for record in found}
    planned = {(ack["partition"], ack["offset"]) for ack in acks if ack["committed"]}
    if seen != planned:
        raise SourceError(
            f"topic {topic}: {len(seen - planned)} records of aborted transactions can be read, and "
            f"{len(planned - seen)} of committed ones cannot: the brokers have ended a transaction of the input "
            "otherwise than they were asked to (KIP-890): run it again"
        )


def await_end(bootstrap: str, topic: str, timeout: float = 60.0) -> None:
    """Return once no transaction of the workload is under way: its last one is acknowledged before its markers are
    written. Raises SourceError, or ObservationError."""
    try:
        wait_for(lambda: not open_transactions(bootstrap, [topic]), timeout, "the workload's last transaction to end")
    except WaitTimeout as error:
        raise SourceError(f"topic {topic}: {error}") from error


class _Writer:
    def __init__(self, bootstrap: str, topic: str, timeout: float) -> None:
        self.topic = topic
        self.acks: list[Mapping[str, object]] = []
        self.errors: list[str] = []
        self.deadline = time.monotonic() + timeout
        self.timeout = timeout
        # transaction.timeout.ms stays the client's 60 s, below the broker's transaction.max.timeout.ms (15 min).
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": f"{topic}-workload",
                "linger.ms": 5,
                "retry.backoff.ms": 20,
                "log_level": 2,
            }
        )
        self._do("init_transactions", self.producer.init_transactions)

    def write(self, transaction: Transaction) -> None:
        self._begin()
        for partition, row in transaction.records:
            self._produce(partition, row, transaction.commit)
        # Also before an abort: it would throw away what is still queued here, and the topic would lack those records.
        if self._do("flush", self.producer.flush):
            raise SourceError(f"topic {self.topic}: records not acknowledged within {self.timeout:g} s")
        if self.errors:
            raise SourceError(f"topic {self.topic}: {self.errors[0]}")
        end = self.producer.commit_transaction if transaction.commit else self.producer.abort_transaction
        self._do(end.__name__, end)

    def _begin(self) -> None:
        try:
            self.producer.begin_transaction()
        except KafkaException as error:
            raise SourceError(f"topic {self.topic}: begin_transaction: {error}") from error

    def _produce(self, partition: int, row: Row, commit: bool) -> None:
        def acknowledged(error: object, message: Message) -> None:
            if error is not None:
                self.errors.append(f"record {row.id} to partition {partition}: {error}")
            place = {"id": row.id, "partition": message.partition(), "offset": message.offset(), "committed": commit}
            self.acks.append(place)

        while True:
            try:
                return self.producer.produce(
                    self.topic, encode(row), row.key.encode(), partition, on_delivery=acknowledged
                )
            except BufferError:  # the local queue is full: acknowledgements make room
                self._do("poll", lambda left: self.producer.poll(min(left, 0.5)))
            except KafkaException as error:
                raise SourceError(f"topic {self.topic}: record {row.id} to partition {partition}: {error}") from error

    def _do(self, step: str, call: Callable[[float], T]) -> T:
        """``call`` with the seconds that are left, repeated while the client says that this is safe."""
        while True:
            left = self.deadline - time.monotonic()
            if left <= 0:
                raise SourceError(f"topic {self.topic}: {step}: not done within {self.timeout:g} s")
            try:
                return call(left)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise SourceError(f"topic {self.topic}: {step}: {error.args[0].str()}") from error
