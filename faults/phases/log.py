"""A partition's log, at the broker that leads it: the job's target's. The workload is written before brokers report."""

from __future__ import annotations

from typing import Literal

from ...plans import Edge
from ..declarations import Phase
from ..probes.rule import Rule, Spot
from ._logs import APPEND, KAFKA_PARTITION, OF_USERS, PARTITION, TOPIC

PHASES = (
    Phase(
        name="log.append",
        edges=("before", "after"),
        selectors=(TOPIC, KAFKA_PARTITION),
        where="broker",
        sinks="kafka",
        meaning="the leader of a partition appends a producer's records: after that they are in its log, and neither "
        "copied to the other brokers nor acknowledged",
        two_phase="invoke: a participant takes what is to be committed",
        source="Partition.appendRecordsToLeader, of AppendOrigin.CLIENT",
        step=80,
    ),
    Phase(
        name="log.leader",
        edges=("before", "after"),
        selectors=(TOPIC, KAFKA_PARTITION),
        where="broker",
        sinks="kafka",
        meaning="a broker becomes the leader of a partition that it has a copy of: a new one, or the old one again",
        two_phase="a participant is replaced",
        source="Partition.makeLeader",
        step=98,
    ),
)


def _append(edge: Edge, at: Literal["ENTRY", "EXIT"]) -> Rule:
    return Rule(
        phase="log.append",
        edge=edge,
        side="broker",
        spot=Spot(*APPEND, at),
        when=f'$2.name().equals("CLIENT") && {OF_USERS}',
        fields={"topic": "$0.topic()", "kafka_partition": "$0.topicPartition().partition()"},
    )


def _leader(edge: Edge, at: Literal["ENTRY", "EXIT"]) -> Rule:
    return Rule(
        phase="log.leader",
        edge=edge,
        side="broker",
        spot=Spot(PARTITION, "makeLeader", at),
        when=f"!$2 && {OF_USERS}",
        fields={"topic": "$0.topic()", "kafka_partition": "$0.topicPartition().partition()"},
    )


RULES = (
    _append("before", "ENTRY"),
    _append("after", "EXIT"),
    _leader("before", "ENTRY"),
    _leader("after", "EXIT"),
)
