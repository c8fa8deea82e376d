"""Kafka transactions, in the broker that coordinates them: the job's on its target, never the workload's."""

from __future__ import annotations

from ..declarations import Parameter, Phase
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
