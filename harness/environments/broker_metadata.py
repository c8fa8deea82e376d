"""What brokers say of themselves, in every environment."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from concurrent.futures import TimeoutError as TooLate
from contextlib import suppress

from confluent_kafka import ElectionType, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._metadata import ClusterMetadata

from ..errors import ObservationError
from ..kafka_transactions import coordinators_answer
from ..runtime.waiting import NotYet

REQUEST_SECONDS = 2.0
TRANSACTION_LOG = "__transaction_state"
STARTED = b"Kafka Server started (kafka.server.KafkaRaftServer)"
REGISTERED = re.compile(rb"Successfully registered broker \d+ with broker epoch (\d+)")
"""kafka.server.BrokerLifecycleManager, at INFO."""


def cluster_metadata(bootstrap: str) -> ClusterMetadata | NotYet:
    """The answer to one metadata request, or why there was none."""
    try:
        return _client(bootstrap).list_topics(timeout=REQUEST_SECONDS)
    except KafkaException as error:
        return NotYet(f"{bootstrap} answers no metadata request: {error.args[0].str()}")


def registered(number: int, address: str, log: bytes) -> str | NotYet:
    """Whether a broker's incarnation is registered and answers with itself among the living; says its epoch.

    ``log`` is what this incarnation printed: it tells it from its predecessor, whose registration the metadata may
    still show.
    """
    epoch = REGISTERED.search(log)
    if epoch is None or STARTED not in log:
        return NotYet(f"broker {number} is {'starting' if epoch is None else 'registered, but not started'}")
    metadata = cluster_metadata(address)
    if isinstance(metadata, NotYet):
        return metadata
    if number not in metadata.brokers:
        return NotYet(f"broker {number} knows only brokers {sorted(metadata.brokers)}")
    return f"broker {number} registered with epoch {int(epoch[1])}"


def all_serve(bootstrap: str, brokers: Collection[int]) -> bool | NotYet:
    """Whether all brokers are there, every partition is led by the one that is to lead it, and every coordinator of
    transactions has read its part of their log.

    Brokers that were restarted have given up what they led, and get it back after minutes only
    (auto.leader.rebalance.enable); so it is given back to them.
    """
    metadata = cluster_metadata(bootstrap)
    if isinstance(metadata, NotYet):
        return metadata
    if len(metadata.brokers) < len(brokers):
        return NotYet(f"brokers {sorted(metadata.brokers)} of {sorted(brokers)}")
    partitions = {
        f"{topic}-{number}": partition
        for topic, of_topic in metadata.topics.items()
        for number, partition in of_topic.partitions.items()
    }
    orphaned = [name for name, partition in partitions.items() if partition.leader < 0]
    if orphaned:
        return NotYet(f"{orphaned[0]} has no leader")
    displaced = [name for name, partition in partitions.items() if partition.leader != partition.replicas[0]]
    if displaced:
        _elect_preferred(bootstrap)
        return NotYet(f"{displaced[0]} is not led by the broker that is to lead it")
    log = metadata.topics.get(TRANSACTION_LOG)
    return log is None or _coordinators_answer(bootstrap, {one.id: one.leader for one in log.partitions.values()})


def _coordinators_answer(bootstrap: str, leaders: Mapping[int, int]) -> bool | NotYet:
    try:
        answer = coordinators_answer(bootstrap, leaders, REQUEST_SECONDS)
    except ObservationError as error:
        return NotYet(str(error))
    return answer or NotYet(f"a coordinator has not read its part of {TRANSACTION_LOG}")


def _elect_preferred(bootstrap: str) -> None:
    """Have every partition led by the first of its replicas, where that is in sync."""
    client = _client(bootstrap)  # has to live until it has the answer
    with suppress(KafkaException, TooLate):
        client.elect_leaders(ElectionType.PREFERRED).result(REQUEST_SECONDS)


def _client(bootstrap: str) -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100,
            "socket.timeout.ms": int(REQUEST_SECONDS * 1000),
        }
    )
