"""Kafka's transactions: which are open, who coordinates them, and ending one that its producer has left.

Every function takes a ``timeout`` in seconds for all that it does, and raises :class:`ObservationError` when a broker
refuses or the time is over. Nothing here writes, besides :func:`abort_transaction`.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from itertools import count
from typing import Any, NamedTuple

from confluent_kafka import KafkaException, Producer

from ..assertions import Open
from .errors import ObservationError
from .kafka_topics import QUIET

ONGOING = "Ongoing"
"""The state in which a transaction's timeout counts."""

ONGOING_STATES = (ONGOING, "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
"""States of ``kafka.coordinator.transaction.TransactionState`` in which records wait for their markers."""

ORPHAN = "producer "
"""Prefix of the name of an open transaction that no coordinator knows: only its producer id is left."""

HOLDS_UP = "read_committed readers get nothing behind its first record"
"""What an open transaction does to others."""


class Partition(NamedTuple):
    """A partition of a topic, as kafka-python takes and gives it."""

    topic: str
    partition: int


def open_transactions(bootstrap: str, topics: Collection[str], timeout: float = 10.0) -> list[Open]:
    """Transactions that still hold records of ``topics`` back, by name.

    Those that a coordinator knows are named by their transactional id. One that only a partition's leader knows (its
    coordinator forgot it: KIP-664) is named ``producer <id>``.
    """
    with admin_client(bootstrap, timeout) as admin:
        described = _ongoing(admin, topics)
        known = {description.producer_id for description in described.values()}
        found = [
            Open(
                "kafka",
                name,
                description.state.value,
                _held(description.topic_partitions, topics),
                HOLDS_UP,
                age=round(time.time() - description.transaction_start_time_ms / 1000, 1),
                timeout=description.transaction_timeout_ms / 1000 if description.state.value == ONGOING else None,
            )
            for name, description in described.items()
        ]
        found += [
            Open("kafka", f"{ORPHAN}{producer.producer_id}", "Orphan", f"{place.topic}-{place.partition}", HOLDS_UP)
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
    with admin_client(bootstrap, timeout) as admin:
        found = named_coordinator(admin, "TRANSACTION", transactional_id)
        return found if found is not None and _asked(admin, found, transactional_id) == 0 else None


def named_coordinator(admin: Any, kind: str, key: str) -> int | None:
    """The broker that any broker names as the coordinator of a GROUP or a TRANSACTION; None while there is none."""
    from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest

    request = FindCoordinatorRequest(key=key, key_type=CoordinatorType[kind].value, coordinator_keys=[key])
    answer = admin._manager.run(admin._manager.send, request)
    found = answer.coordinators[0] if answer.coordinators else answer
    return int(found.node_id) if found.error_code == 0 else None


def _asked(admin: Any, broker: int, transactional_id: str) -> int:
    """The error code with which a broker answers for a transaction."""
    from kafka.protocol.admin.transactions import DescribeTransactionsRequest

    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    return int(admin._manager.run(admin._manager.send, request, broker).transaction_states[0].error_code)


def coordinators_answer(bootstrap: str, leaders: Mapping[int, int], timeout: float = 10.0) -> bool:
    """Whether the coordinator of each partition of the transaction log has read it; ``leaders`` are they, by partition.

    One that has not, or does not know yet that it is the coordinator, says so when it is asked for a transaction.
    """
    from kafka.errors import NoError, TransactionalIdNotFoundError

    knowing = (NoError.errno, TransactionalIdNotFoundError.errno)
    with admin_client(bootstrap, timeout) as admin:
        return all(_asked(admin, leader, _id_of(one, len(leaders))) in knowing for one, leader in leaders.items())


def _id_of(partition: int, partitions: int) -> str:
    """A transactional id whose transactions are in this partition of the log (TransactionStateManager.partitionFor)."""
    return next(name for name in map(str, count()) if _java_hash(name) % partitions == partition)


def _java_hash(text: str) -> int:
    """String.hashCode of an ASCII text that is short enough for its hash to be positive.

    >>> _java_hash("10")
    1567
    """
    return reduce(lambda found, character: 31 * found + ord(character), text, 0)


def _abort_orphan(bootstrap: str, transaction: Open, timeout: float) -> None:
    from kafka.admin import AbortTransactionSpec

    topic = transaction.detail.rpartition("-")[0]
    with admin_client(bootstrap, timeout) as admin:
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


@contextmanager
def admin_client(bootstrap: str, timeout: float) -> Iterator[Any]:
    """kafka-python's admin client: the only one here that speaks the requests of KIP-664 and KIP-595."""
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
        raise ObservationError(f"brokers at {bootstrap}: {type(error).__name__}: {error}") from error
