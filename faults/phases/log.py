"""A partition's log, at the broker that leads it: the job's target's. The workload is written before brokers report."""

from __future__ import annotations

from ..declarations import Phase
from ._logs import APPEND, KAFKA_PARTITION, OF_USERS, TOPIC, at_leader

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

_APPENDED = f'$2.name().equals("CLIENT") && {OF_USERS}'
_LED = f"!$2 && {OF_USERS}"

RULES = (
    at_leader("log.append", "before", APPEND, _APPENDED),
    at_leader("log.append", "after", APPEND, _APPENDED),
    at_leader("log.leader", "before", "makeLeader", _LED),
    at_leader("log.leader", "after", "makeLeader", _LED),
)
