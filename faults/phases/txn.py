"""Kafka transactions, in the broker that coordinates them: the job's on its target, never the workload's.

handleEndTransaction is called with each EndTxn request. addTxnMarkersToSend is called once PREPARE_COMMIT (or
PREPARE_ABORT) is durable in the transaction log and before a marker is sent; also by a coordinator that found such a
state when it loaded its partition of the log. writeTxnCompletion is called once every leader has written its marker.
"""

from __future__ import annotations

from ..declarations import Parameter, Phase
from ..probes.rule import Rule, Spot
from ._sweeps import BROKER

TRANSACTIONAL_ID = Parameter("transactional_id", "text", "the producer's transactional.id")
RESULT = Parameter("result", "text", "how the transaction ends", choices=("commit", "abort"))

PHASES = (
    Phase(
        name="txn.end",
        edges=("before",),
        selectors=(TRANSACTIONAL_ID, RESULT),
        where="broker",
        sinks="kafka-transactions",
        meaning="the coordinator has received EndTxn and has not looked at it: nothing of its decision is durable",
        two_phase="the coordinator is asked to decide",
        source="TransactionCoordinator.handleEndTransaction",
        step=85,
        sweep=BROKER,
    ),
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
    Phase(
        name="txn.complete",
        edges=("before",),
        selectors=(TRANSACTIONAL_ID, RESULT),
        where="broker",
        sinks="kafka-transactions",
        meaning="every leader has written the transaction's marker, the coordinator has not noted it as complete",
        two_phase="every participant has been told, the coordinator has not forgotten the transaction",
        source="TransactionMarkerChannelManager.writeTxnCompletion",
        step=95,
        sweep=BROKER,
    ),
)

_MARKERS = "kafka.coordinator.transaction.TransactionMarkerChannelManager"
_COORDINATOR = "kafka.coordinator.transaction.TransactionCoordinator"

RULES = (
    Rule(
        phase="txn.end",
        edge="before",
        side="broker",
        spot=Spot(_COORDINATOR, "handleEndTransaction", "ENTRY"),
        fields={"result": "$4.toString().toLowerCase()", "transactional_id": "$1"},
    ),
    Rule(
        phase="txn.prepare",
        edge="after",
        side="broker",
        spot=Spot(_MARKERS, "addTxnMarkersToSend", "ENTRY"),
        fields={"result": "$2.toString().toLowerCase()", "transactional_id": "$3.transactionalId()"},
    ),
    Rule(
        phase="txn.complete",
        edge="before",
        side="broker",
        spot=Spot(_MARKERS, "writeTxnCompletion", "ENTRY"),
        fields={
            "result": '($1.newMetadata().txnState().name().endsWith("COMMIT") ? "commit" : "abort")',
            "transactional_id": "$1.transactionalId()",
        },
    ),
)
