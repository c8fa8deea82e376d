"""What phases of a broker's log share: where records are appended by a leader, and whose they are."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ...plans import Edge
from ..declarations import Parameter
from ..probes.rule import Rule, Spot

APPEND = "appendRecordsToLeader"
NO_MORE: Mapping[str, str] = MappingProxyType({})

OF_USERS = '!$0.topic().startsWith("__")'
"""Not one of the broker's own topics: __transaction_state, __consumer_offsets."""

TOPIC = Parameter("topic", "text", "the topic's name")
KAFKA_PARTITION = Parameter("kafka_partition", "number", "number of the topic's partition, from 0")


def at_leader(
    phase: str, edge: Edge, method: str, when: str, fields: Mapping[str, str] = NO_MORE, bind: tuple[str, ...] = ()
) -> Rule:
    """Reports a method of a partition's leader: where it begins, or where it returns."""
    return Rule(
        phase=phase,
        edge=edge,
        side="broker",
        spot=Spot("kafka.cluster.Partition", method, "ENTRY" if edge == "before" else "EXIT"),
        bind=bind,
        when=when,
        fields={**fields, "topic": "$0.topic()", "kafka_partition": "$0.topicPartition().partition()"},
    )
