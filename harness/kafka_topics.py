"""Kafka's topics: making and deleting them, where they end, and what a reader sees of them.

Every function takes a ``timeout`` in seconds for all that it does, and raises :class:`ObservationError` when a broker
refuses or the time is over.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec  # type: ignore[attr-defined]

from .errors import ObservationError

Isolation = Literal["read_committed", "read_uncommitted"]

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


class Record(NamedTuple):
    partition: int
    offset: int
    value: bytes | None


BROKERS_OWN = -1
"""A number of copies that leaves it to the brokers' default.replication.factor (KIP-464)."""


def create_topics(bootstrap: str, topics: Mapping[str, int], copies: int | None = None, timeout: float = 30.0) -> None:
    """Create topics (name -> number of partitions), each with so many copies (None: as the brokers make them), and
    return once each partition has a leader."""
    admin = _admin(bootstrap)
    until = time.monotonic() + timeout
    factor = BROKERS_OWN if copies is None else copies
    new = [NewTopic(name, partitions, factor) for name, partitions in topics.items()]
    for name, future in admin.create_topics(new, request_timeout=timeout).items():
        _result(future, f"topic {name}: not created", until)
    for name, partitions in topics.items():
        _await_leaders(admin, name, partitions, until)


def partition_leader(bootstrap: str, topic: str, partition: int, timeout: float = 10.0) -> int:
    """The id of the broker that leads a partition."""
    found = _partition(bootstrap, topic, partition, timeout)
    if found is None or found.leader < 0:
        raise ObservationError(f"topic {topic} partition {partition} has no leader")
    return int(found.leader)


def partition_copies(bootstrap: str, topic: str, partition: int, timeout: float = 10.0) -> list[int]:
    """The ids of the brokers that have a copy of a partition; none if there is no such partition."""
    found = _partition(bootstrap, topic, partition, timeout)
    return [] if found is None else sorted(found.replicas)


def topics_like(bootstrap: str, pattern: str, prefix: str, timeout: float = 10.0) -> list[str]:
    """The names of topics that begin with ``prefix`` and are as ``pattern`` says, which may have wildcards."""
    names = _topics(bootstrap, timeout)
    return sorted(name for name in names if name.startswith(prefix) and fnmatchcase(name, pattern))


def delete_topics(bootstrap: str, topics: Collection[str], timeout: float = 5.0) -> None:
    """Delete topics with their records. No error for one that is gone."""
    admin = _admin(bootstrap)
    until = time.monotonic() + timeout
    for name, future in admin.delete_topics(list(topics), request_timeout=timeout).items():
        try:
            _result(future, f"topic {name}: not deleted", until)
        except ObservationError as error:
            if _code(error) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise


def end_offsets(
    bootstrap: str, topic: str, isolation: Isolation = "read_committed", timeout: float = 10.0
) -> dict[int, int]:
    """The end of each partition: the last stable offset (read_committed) or the high watermark."""
    admin = _admin(bootstrap)
    return _settled_ends(admin, topic, isolation, time.monotonic() + timeout)


def _settled_ends(admin: AdminClient, topic: str, isolation: Isolation, until: float) -> dict[int, int]:
    """Asked again where a new leader does not serve yet."""
    while True:
        try:
            return _end_offsets(admin, topic, LEVELS[isolation], until)
        except ObservationError as error:
            if _code(error) not in MOVING or time.monotonic() > until:
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
    admin = _admin(bootstrap)
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


def _topics(bootstrap: str, timeout: float) -> Mapping[str, Any]:
    """All topics by name, as the first broker says that answers: others may be stopped."""
    servers = bootstrap.split(",")
    pool = ThreadPoolExecutor(len(servers))
    try:
        asked = [pool.submit(_listed, _admin(server), time.monotonic() + timeout) for server in servers]
        for one in as_completed(asked):
            if one.exception() is None:
                return one.result()
    finally:
        pool.shutdown(wait=False)  # who is stopped keeps its thread until the time is over
    raise ObservationError(f"no broker of {bootstrap} answers within {timeout:g} s")


def _admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, **QUIET})


def _partition(bootstrap: str, topic: str, partition: int, timeout: float) -> Any:
    """None if there is no such partition."""
    topics = _topics(bootstrap, timeout)
    return topics[topic].partitions.get(partition) if topic in topics else None


def _metadata(admin: AdminClient, topic: str, until: float) -> dict[int, Any]:
    """The topic's partitions, none if it is unknown."""
    try:
        topics = _listed(admin, until)
    except ObservationError as error:
        raise ObservationError(f"topic {topic}: {error}") from error
    return dict(topics[topic].partitions) if topic in topics else {}


def _listed(admin: AdminClient, until: float) -> Mapping[str, Any]:
    """All topics are asked for: to ask for one by name creates it, where the broker's ``auto.create.topics.enable`` is
    left at its default."""
    try:
        return dict(admin.list_topics(timeout=_left(until)).topics)
    except KafkaException as error:
        raise ObservationError(f"no metadata: {error.args[0].str()}") from error


def _result(future: Future[Any], what: str, until: float) -> Any:
    try:
        return future.result(_left(until))
    except KafkaException as error:
        raise ObservationError(f"{what}: {error.args[0].str()}") from error
    except TimeoutError as error:
        raise ObservationError(f"{what}: no answer in time") from error


def _code(error: ObservationError) -> int | None:
    """Kafka's number of the error that was behind it, if one was."""
    cause = error.__cause__
    code: int | None = cause.args[0].code() if isinstance(cause, KafkaException) else None
    return code


def _left(until: float) -> float:
    """Seconds until then, at least a few, so that the client reports the error rather than refuses the argument."""
    return max(until - time.monotonic(), 0.05)
