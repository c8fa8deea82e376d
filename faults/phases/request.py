"""What the job asks of the services of its targets: where a proxy passes it on, and where the answer has come."""

from __future__ import annotations

from ..declarations import Parameter, Phase
from ..protocols import OWN, PROTOCOLS
from ._selectors import ATTEMPT, BATCH, OF_A_QUERY, PARTITION, STAGE, WHEN

KINDS = ", ".join(dict.fromkeys(kind for protocol in (*PROTOCOLS.values(), OWN) for kind in protocol.kinds))

SERVICE = Parameter("service", "text", f"the service of a target ({', '.join(PROTOCOLS)}), or what --proxy calls it")
TOPIC = Parameter("topic", "text", "of records for Kafka: the topic of the first of their partitions")
KAFKA_PARTITION = Parameter("kafka_partition", "number", "the number of that partition, from 0")
KIND = Parameter("kind", "text", f"what is asked for, as its protocol calls it: {KINDS}", sample="COMMIT")

PHASES = (
    Phase(
        name="request",
        edges=("before", "after"),
        selectors=(SERVICE, KIND, TOPIC, KAFKA_PARTITION, BATCH, WHEN, STAGE, PARTITION, ATTEMPT, *OF_A_QUERY),
        where="connection",
        sinks="services",
        meaning="the job asks a service for a change: before that is passed on, and before the answer is",
        two_phase="any message of the sink's own protocol",
        source="a proxy between the job and the service",
        step=110,
    ),
)
