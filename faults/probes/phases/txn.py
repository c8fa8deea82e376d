"""txn.prepare: in the broker that coordinates a Kafka transaction.

addTxnMarkersToSend is called once PREPARE_COMMIT (or PREPARE_ABORT) is durable in the transaction log and before a
marker is sent; also by a coordinator that found such a state when it loaded its partition of the log.
"""

from __future__ import annotations

from ..rule import Rule, Spot

RULES = (
    Rule(
        phase="txn.prepare",
        edge="after",
        side="broker",
        spot=Spot("kafka.coordinator.transaction.TransactionMarkerChannelManager", "addTxnMarkersToSend", "ENTRY"),
        fields={"result": "$2.toString().toLowerCase()", "transactional_id": "$3.transactionalId()"},
    ),
)
