"""Kafka transactions, in the broker that coordinates them: the job's on its target, never the workload's.

addTxnMarkersToSend is called once PREPARE_COMMIT (or PREPARE_ABORT) is durable in the transaction log and before a
marker is sent; also by a coordinator that found such a state when it loaded its partition of the log.
"""

from __future__ import annotations

from ..declarations import Parameter, Phase
from ..probes.rule import Rule, Spot
from ._sweeps import BROKER

TRANSACTIONAL_ID = Parameter("transactional_id", "text", "the producer's transactional.id")
RESULT = Parameter("result", "text", "how the transaction ends", choices=("commit", "abort"))

PHASES = (
    Phase(
        name="txn.prepare",
        edges=("after",),
        selectors=(TRANSACTIONAL_ID, RESULT),
        where="broker",
        sinks="kafka-transactions",
        meaning="the coordinator's decision (PREPARE_COMMIT or PREPARE_ABORT) is durable, no marker is sent yet",
        two_phase="decided: the decision is durable, no participant has been told",
        source="TransactionMarkerChannelManager.addTxnMarkersToSend",
        step=90,
        sweep=BROKER,
    ),
)

RULES = (
    Rule(
        phase="txn.prepare",
        edge="after",
        side="broker",
        spot=Spot("kafka.coordinator.transaction.TransactionMarkerChannelManager", "addTxnMarkersToSend", "ENTRY"),
        fields={"result": "$2.toString().toLowerCase()", "transactional_id": "$3.transactionalId()"},
    ),
)
