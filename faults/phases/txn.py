"""Kafka transactions, in the broker that coordinates them: the job's on its target, never the workload's.

handleEndTransaction is called with each EndTxn request. addTxnMarkersToSend is called once PREPARE_COMMIT (or
PREPARE_ABORT) is durable in the transaction log and before a marker is sent; also by a coordinator that found such a
state when it loaded its partition of the log. A leader writes a marker as it writes records, but on behalf of the
coordinator (AppendOrigin). writeTxnCompletion is called once every leader has written its marker.
loadTransactionMetadata is what a coordinator reads its partition of the transaction log by; behind it, it takes a lock,
answers for what it found, and finishes what is decided there.
"""

from __future__ import annotations

from ...plans import Edge
from ..declarations import Parameter, Phase
from ..probes.rule import Rule, Spot
from ._logs import APPEND, KAFKA_PARTITION, OF_USERS, TOPIC, at_leader
from ._sweeps import BROKER

TRANSACTIONAL_ID = Parameter("transactional_id", "text", "the producer's transactional.id")
RESULT = Parameter("result", "text", "how the transaction ends", choices=("commit", "abort"), sample="commit")

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
        name="txn.marker",
        edges=("before", "after"),
        selectors=(RESULT, TOPIC, KAFKA_PARTITION),
        where="broker",
        sinks="kafka-transactions",
        meaning="the leader of a partition writes the transaction's marker, which decides for its readers",
        two_phase="a participant is told the decision",
        source="Partition.appendRecordsToLeader, of AppendOrigin.COORDINATOR",
        step=92,
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
    Phase(
        name="txn.load",
        edges=("after",),
        selectors=(),
        where="broker",
        sinks="kafka-transactions",
        meaning="a coordinator that takes over has read its transactions from the log, and answers for none yet",
        two_phase="a new coordinator knows what was decided, and has told nobody again",
        source="TransactionStateManager.loadTransactionMetadata",
        step=97,
    ),
)

_MARKERS = "kafka.coordinator.transaction.TransactionMarkerChannelManager"
_COORDINATOR = "kafka.coordinator.transaction.TransactionCoordinator"
_RECORDS = "org.apache.kafka.common.record.internal"
_OF_COORDINATOR = f'$2.name().equals("COORDINATOR") && {OF_USERS}'


def _marker(edge: Edge) -> Rule:
    """A marker is the only record of its batch."""
    return at_leader(
        "txn.marker",
        edge,
        APPEND,
        when="marker",
        fields={"result": f"{_RECORDS}.ControlRecordType.parse(r.key()).name().toLowerCase()"},
        bind=(
            f"here:boolean = {_OF_COORDINATOR}",
            f"b:{_RECORDS}.MutableRecordBatch = (here ? $1.batches().iterator().next() : null)",
            "marker:boolean = (here && b.isControlBatch())",
            f"r:{_RECORDS}.Record = (marker ? b.iterator().next() : null)",
        ),
    )


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
    _marker("before"),
    _marker("after"),
    Rule(
        phase="txn.load",
        edge="after",
        side="broker",
        spot=Spot("kafka.coordinator.transaction.TransactionStateManager", "loadTransactionMetadata", "EXIT"),
        when="$!.size() > 0",
        fields={"transactions": "$!.size()"},
    ),
)
