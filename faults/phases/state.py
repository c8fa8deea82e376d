"""The state of stateful operators (aggregations, joins, de-duplication), which each task commits for its partition.

A task commits its state when it has read its last row, so before its writer's commit and outside of it: a task that is
tried again after that has committed a version of its state whose rows nobody has written. The next attempt loads the
version before, by the batch's number, and commits the same one again.
"""

from __future__ import annotations

from ..declarations import Parameter, Phase
from ..probes.rule import Rule, Spot
from ._selectors import ATTEMPT, BATCH, PARTITION, QUERY, STAGE
from ._sweeps import TASK
from ._tasks import CURRENT, IDENTITY, STREAMING

OPERATOR = Parameter("operator", "number", "number of the stateful operator within the query, from 0")
STORE = Parameter("store", "text", "name of the store: default; an operator with several has other names")

PHASES = (
    Phase(
        name="state.commit",
        edges=("before", "after"),
        selectors=(BATCH, STAGE, PARTITION, ATTEMPT, OPERATOR, STORE, QUERY),
        where="executor",
        sinks="stateful",
        meaning="a task commits the state of its partition: the next version of a state store is durable",
        two_phase="a participant's own record, before it votes",
        source="RocksDBStateStore.commit, HDFSBackedStateStore.commit",
        step=55,
        sweep=TASK,
    ),
)

_STATE = "org.apache.spark.sql.execution.streaming.state."
_ROCKSDB = f"{_STATE}RocksDBStateStoreProvider$RocksDBStateStore"
_HDFS = f"{_STATE}HDFSBackedStateStoreProvider$HDFSBackedStateStore"
_FIELDS = {
    **IDENTITY,
    "operator": "$0.id().operatorId()",
    "store": "$0.id().storeName()",
    "version": "$0.version()",
}


def _commit(class_name: str, variant: str) -> tuple[Rule, Rule]:
    before, after = Spot(class_name, "commit()", "ENTRY"), Spot(class_name, "commit()", "EXIT")
    bind = (CURRENT,)
    return (
        Rule("state.commit", "before", "executor", before, _FIELDS, bind, STREAMING, variant),
        Rule("state.commit", "after", "executor", after, _FIELDS, bind, STREAMING, variant),
    )


RULES = (*_commit(_ROCKSDB, "RocksDB"), *_commit(_HDFS, "HDFS"))
