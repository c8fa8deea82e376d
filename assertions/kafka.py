"""Observation of Kafka: what a reader of a topic sees, and which transactions stand in its way.

Every function takes a ``timeout`` in seconds for all that it does, and raises :class:`ObservationError` when a broker
refuses or the time is over. Nothing here writes, besides :func:`create_topics` and :func:`abort_transaction`.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec  # type: ignore[attr-defined]

from .model import Open

Isolation = Literal["read_committed", "read_uncommitted"]

ONGOING_STATES = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
"""States of ``kafka.coordinator.transaction.TransactionState`` in which records wait for their markers."""

ORPHAN = "producer "
"""Prefix of the name of an open transaction that no coordinator knows: only its producer id is left."""

LEVELS = {
    "read_committed": IsolationLevel.READ_COMMITTED,
    "read_uncommitted": IsolationLevel.READ_UNCOMMITTED,
}

MOVING = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.OFFSET_NOT_AVAILABLE,
)
"""Errors of a partition whose new leader is elected but does not serve yet."""

QUIET = {"log_level": 2, "retry.backoff.ms": 50, "reconnect.backoff.max.ms": 1000}
"""Client settings: outages are reported by exceptions, not on stderr, and are got over quickly."""


class ObservationError(Exception):
    """A target could not be observed: one line naming the target and what was seen last."""


class Partition(NamedTuple):
    """A partition of a topic, as kafka-python takes and gives it."""

    topic: str
    partition: int


class Record(NamedTuple):
    partition: int
    offset: int
    value: bytes | None


BROKERS_OWN = -1
"""A number of copies that leaves it to the brokers' default.replication.factor (KIP-464)."""


def create_topics(
    bootstrap: str, topics: Mapping[str, int], replication: int = BROKERS_OWN, timeout: float = 30.0
) -> None:
    """Create topics (name -> number of partitions) and return once each partition has a leader."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    until = time.monotonic() + timeout
    new = [NewTopic(name, partitions, replication) for name, partitions in topics.items()]
    for name, future in admin.create_topics(new, request_timeout=timeout).items():
        _result(future, f"topic {name}: not created", until)
    for name, partitions in topics.items():
        _await_leaders(admin, name, partitions, until)


def end_offsets(
    bootstrap: str, topic: str, isolation: Isolation = "read_committed", timeout: float = 10.0
) -> dict[int, int]:
    """The end of each partition: the last stable offset (read_committed) or the high watermark."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    return _settled_ends(admin, topic, isolation, time.monotonic() + timeout)


def _settled_ends(admin: AdminClient, topic: str, isolation: Isolation, until: float) -> dict[int, int]:
    """Asked again where a new leader does not serve yet."""
    while True:
        try:
            return _end_offsets(admin, topic, LEVELS[isolation], until)
        except ObservationError as error:
            cause = error.__cause__
            passing = isinstance(cause, KafkaException) and cause.args[0].code() in MOVING
            if not passing or time.monotonic() > until:
                raise
        time.sleep(0.02)


def _end_offsets(admin: AdminClient, topic: str, isolation: IsolationLevel, until: float) -> dict[int, int]:
    partitions = _partitions(admin, topic, until)
    end = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    latest = {TopicPartition(topic, partition): end for partition in partitions}
    answers = admin.list_offsets(latest, isolation_level=isolation, request_timeout=_left(until))
    return {
        place.partition: _result(future, f"topic {topic} partition {place.partition}: no end offset", until).offset
        for place, future in answers.items()
    }


def unstable_partitions(bootstrap: str, topic: str, timeout: float = 10.0) -> dict[int, tuple[int, int]]:
    """``{partition: (last stable offset, high watermark)}`` where they differ: an open transaction holds readers up."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    until = time.monotonic() + timeout
    ends = _settled_ends(admin, topic, "read_uncommitted", until)
    stable_ends = _settled_ends(admin, topic, "read_committed", until)
    return {p: (stable_ends[p], ends[p]) for p in ends if stable_ends[p] < ends[p]}


def stable(bootstrap: str, topic: str, timeout: float = 10.0) -> bool:
    """Whether a read_committed reader can reach the end of every partition."""
    return not unstable_partitions(bootstrap, topic, timeout)


def read_topic(bootstrap: str, topic: str, isolation: Isolation, timeout: float = 30.0) -> list[Record]:
    """The records up to the ends that were captured at the start, by partition and offset.

    A reader that waits for the record before the end waits for ever when that is a control marker or an aborted
    record (FLINK-34470): a partition is also done once the client says that it has reached the partition's end there.
    """
    until = time.monotonic() + timeout
    open_ends = {p: end for p, end in end_offsets(bootstrap, topic, isolation, timeout).items() if end > 0}
    records: list[Record] = []
    with _reader(bootstrap, topic, isolation, open_ends) as consumer:
        while open_ends:
            messages = consumer.consume(10_000, timeout=0.01)
            for message in messages:
                _take(message, open_ends, records)
            if open_ends and time.monotonic() > until:
                missing = ", ".join(f"partition {p} up to {end}" for p, end in sorted(open_ends.items()))
                raise ObservationError(f"topic {topic}: not read within {timeout:g} s ({isolation}): {missing}")
    return sorted(records)


def open_transactions(bootstrap: str, topics: Collection[str], timeout: float = 10.0) -> list[Open]:
    """Transactions that still hold records of ``topics`` back, by name.

    Those that a coordinator knows are named by their transactional id. One that only a partition's leader knows (its
    coordinator forgot it: KIP-664) is named ``producer <id>``.
    """
    with _admin(bootstrap, timeout) as admin:
        described = _ongoing(admin, topics)
        known = {description.producer_id for description in described.values()}
        found = [
            Open("kafka", name, description.state.value, _held(description.topic_partitions, topics))
            for name, description in described.items()
        ]
        found += [
            Open("kafka", f"{ORPHAN}{producer.producer_id}", "Orphan", f"{place.topic}-{place.partition}")
            for place, producer in _open_producers(admin, topics)
            if producer.producer_id not in known
        ]
    return sorted(found, key=lambda transaction: (transaction.name, transaction.detail))


def abort_transaction(bootstrap: str, transaction: Open, timeout: float = 30.0) -> None:
    """End ``transaction`` (of :func:`open_transactions`) by an abort, and return once its records hold nobody up.

    A transactional id is fenced by a producer of our own with that id: its init aborts what is open under it (and
    waits for what is already prepared, which then ends as it was decided).
    """
    if transaction.name.startswith(ORPHAN):
        return _abort_orphan(bootstrap, transaction, timeout)
    fence = Producer({"bootstrap.servers": bootstrap, "transactional.id": transaction.name, **QUIET})
    try:
        return fence.init_transactions(timeout)
    except KafkaException as error:
        raise ObservationError(f"transaction {transaction.name}: not aborted: {error.args[0].str()}") from error


def transaction_coordinator(bootstrap: str, transactional_id: str, timeout: float = 10.0) -> int | None:
    """The broker that coordinates the transactions of an id, and says so itself; None while there is none.

    A broker that is asked who the coordinator is may answer by what was true before. Raises ObservationError if no
    broker answers.
    """
    from kafka.protocol.admin.transactions import DescribeTransactionsRequest
    from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest

    kind = CoordinatorType.TRANSACTION.value
    request = FindCoordinatorRequest(key=transactional_id, key_type=kind, coordinator_keys=[transactional_id])
    with _admin(bootstrap, timeout) as admin:
        answer = admin._manager.run(admin._manager.send, request)
        found = answer.coordinators[0] if answer.coordinators else answer
        if found.error_code != 0:
            return None
        described = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        states = admin._manager.run(admin._manager.send, described, found.node_id).transaction_states
    return int(found.node_id) if states[0].error_code == 0 else None


def _abort_orphan(bootstrap: str, transaction: Open, timeout: float) -> None:
    from kafka.admin import AbortTransactionSpec

    topic = transaction.detail.rpartition("-")[0]
    with _admin(bootstrap, timeout) as admin:
        for place, producer in _open_producers(admin, [topic]):
            if f"{ORPHAN}{producer.producer_id}" == transaction.name:
                epoch = producer.coordinator_epoch
                admin.abort_transaction(
                    AbortTransactionSpec(place, producer.producer_id, producer.producer_epoch, max(epoch, 0))
                )


def _ongoing(admin: Any, topics: Collection[str]) -> dict[str, Any]:
    """Descriptions by transactional id of what is neither empty nor complete in ``topics``."""
    from kafka.errors import TransactionalIdNotFoundError

    listed = admin.list_transactions(state_filters=list(ONGOING_STATES))
    described: dict[str, Any] = {}
    for listing in (listing for listings in listed.values() for listing in listings):
        try:
            described |= admin.describe_transactions([listing.transactional_id])
        except TransactionalIdNotFoundError:  # it expired in between
            continue
    return {
        name: description
        for name, description in described.items()
        if description.state.value in ONGOING_STATES and _held(description.topic_partitions, topics)
    }


def _open_producers(admin: Any, topics: Collection[str]) -> Iterator[tuple[Partition, Any]]:
    """Producers with records in an open transaction, as the leader of each partition sees them."""
    described = admin.describe_topics(list(topics))
    places = [Partition(t["name"], p["partition_index"]) for t in described for p in t["partitions"]]
    for place, state in admin.describe_producers(places).items():
        for producer in state.active_producers:
            if producer.current_transaction_start_offset >= 0:
                yield place, producer


def _held(places: Collection[Partition], topics: Collection[str]) -> str:
    return ", ".join(f"{place.topic}-{place.partition}" for place in sorted(places) if place.topic in topics)


def _take(message: Message, open_ends: dict[int, int], records: list[Record]) -> None:
    """Keep a record that lies before its partition's captured end; close the partition once the end is reached."""
    partition, offset, error = message.partition(), message.offset(), message.error()
    if partition is None or offset is None or partition not in open_ends:
        if error is not None and error.fatal():
            raise ObservationError(f"topic {message.topic()}: {error.str()}")
        return
    if error is not None and error.code() == KafkaError._PARTITION_EOF:
        reached = offset >= open_ends[partition]
    elif error is not None:
        if not error.retriable():
            raise ObservationError(f"topic {message.topic()} partition {partition}: {error.str()}")
        return
    else:
        if offset < open_ends[partition]:
            records.append(Record(partition, offset, _bytes(message.value())))
        reached = offset >= open_ends[partition] - 1
    if reached:
        del open_ends[partition]


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


@contextmanager
def _reader(bootstrap: str, topic: str, isolation: Isolation, partitions: Collection[int]) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{topic}-observer",  # asked for by the client; nothing is committed under it
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",  # where the topic's first records have been deleted
            "fetch.wait.max.ms": 10,
            **QUIET,
        }
    )
    try:
        # Offset 0, not OFFSET_BEGINNING: looking that up costs the client half a second.
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        yield consumer
    except KafkaException as error:
        raise ObservationError(f"topic {topic}: {error.args[0].str()}") from error
    finally:
        consumer.close()


@contextmanager
def _admin(bootstrap: str, timeout: float) -> Iterator[Any]:
    """kafka-python's admin client: the only one here that speaks the requests of KIP-664."""
    from kafka.admin import KafkaAdminClient  # not above: it takes a while to load
    from kafka.errors import KafkaError as ClientError

    milliseconds = int(timeout * 1000)
    try:
        admin = KafkaAdminClient(
            bootstrap_servers=bootstrap.split(","),
            request_timeout_ms=milliseconds,
            bootstrap_timeout_ms=milliseconds,
        )
        try:
            yield admin
        finally:
            admin.close()
    except ClientError as error:
        raise ObservationError(f"transactions at {bootstrap}: {type(error).__name__}: {error}") from error


def _partitions(admin: AdminClient, topic: str, until: float) -> list[int]:
    partitions = _metadata(admin, topic, until)
    if not partitions:
        raise ObservationError(f"topic {topic}: the brokers do not know it")
    return sorted(partitions)


def _await_leaders(admin: AdminClient, topic: str, partitions: int, until: float) -> None:
    while (led := _led(admin, topic, until)) < partitions:
        if time.monotonic() > until:
            raise ObservationError(f"topic {topic}: {led} of {partitions} partitions have a leader in time")
        time.sleep(0.02)


def _led(admin: AdminClient, topic: str, until: float) -> int:
    """How many partitions have a leader; none while the brokers do not know the topic yet."""
    partitions = _metadata(admin, topic, until).values()
    return sum(partition.leader >= 0 and partition.error is None for partition in partitions)


def _metadata(admin: AdminClient, topic: str, until: float) -> dict[int, Any]:
    """The topic's partitions, none if it is unknown. All topics are asked for: to ask for one by name creates it, where
    the broker's ``auto.create.topics.enable`` is left at its default."""
    try:
        topics = admin.list_topics(timeout=_left(until)).topics
    except KafkaException as error:
        raise ObservationError(f"topic {topic}: no metadata: {error.args[0].str()}") from error
    return dict(topics[topic].partitions) if topic in topics else {}


def _result(future: Future[Any], what: str, until: float) -> Any:
    try:
        return future.result(_left(until))
    except KafkaException as error:
        raise ObservationError(f"{what}: {error.args[0].str()}") from error
    except TimeoutError as error:
        raise ObservationError(f"{what}: no answer in time") from error


def _left(until: float) -> float:
    """Seconds until then, at least a few, so that the client reports the error rather than refuses the argument."""
    return max(until - time.monotonic(), 0.05)
