"""The state of stateful operators (aggregations, joins, de-duplication), which each task loads and commits for its
partition.

A task commits its state when it has read its last row, so before its writer's commit and outside of it: a task that is
tried again after that has committed a version of its state whose rows nobody has written. The next attempt loads the
version before, by the batch's number, and commits the same one again.

Loading writes nothing, so a crash there is the same as one before the task: it is no point of a sweep. It is reported
where a recovery is measured, because a new driver loads all of the state anew.
"""

from __future__ import annotations

from ..declarations import Parameter, Phase
from ..probes.rule import Rule, Spot
from ._selectors import ATTEMPT, BATCH, OF_A_QUERY, PARTITION, STAGE
from ._sweeps import TASK
from ._tasks import CURRENT, IDENTITY, STREAMING

OPERATOR = Parameter("operator", "number", "number of the stateful operator within the query, from 0")
STORE = Parameter("store", "text", "name of the store: default; an operator with several has other names")

PHASES = (
    Phase(
        name="state.load",
        edges=("before", "after"),
        selectors=(BATCH, STAGE, PARTITION, ATTEMPT, OPERATOR, STORE, *OF_A_QUERY),
        where="executor",
        sinks="stateful",
        meaning="a task loads the state of its partition: the version that the batch before has committed",
        two_phase="a participant recovers its own record",
        source="RocksDBStateStoreProvider and HDFSBackedStateStoreProvider: getStore, getReadStore",
        step=35,
    ),
    Phase(
        name="state.commit",
        edges=("before", "after"),
        selectors=(BATCH, STAGE, PARTITION, ATTEMPT, OPERATOR, STORE, *OF_A_QUERY),
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
_STORES = {
    "RocksDB": "RocksDBStateStoreProvider$RocksDBStateStore",
    "HDFS": "HDFSBackedStateStoreProvider$HDFSBackedStateStore",
}
_PROVIDERS = {"RocksDB": "RocksDBStateStoreProvider", "HDFS": "HDFSBackedStateStoreProvider"}


def _rules(phase: str, class_name: str, method: str, identity: str, version: str, variant: str) -> tuple[Rule, ...]:
    """Before and after a method; ``identity`` gives the StateStoreId, ``version`` the number of the state's version."""
    fields = {
        **IDENTITY,
        "operator": f"{identity}.operatorId()",
        "store": f"{identity}.storeName()",
        "version": version,
    }
    before, after = (Spot(f"{_STATE}{class_name}", method, at) for at in ("ENTRY", "EXIT"))
    return (
        Rule(phase, "before", "executor", before, fields, (CURRENT,), STREAMING, variant),
        Rule(phase, "after", "executor", after, fields, (CURRENT,), STREAMING, variant),
    )


def _loading(provider: str, variant: str) -> tuple[Rule, ...]:
    """By the methods' names alone: their arguments differ from release to release, the version is the first in all. An
    operator that reads its state before it writes it opens it for reading, and then again."""
    return (
        *_rules("state.load", provider, "getStore", "$0.stateStoreId()", "$1", variant),
        *_rules("state.load", provider, "getReadStore", "$0.stateStoreId()", "$1", f"{variant}, to read"),
    )


RULES = (
    *(
        rule
        for name, store in _STORES.items()
        for rule in _rules("state.commit", store, "commit()", "$0.id()", "$0.version()", name)
    ),
    *(rule for name, provider in _PROVIDERS.items() for rule in _loading(provider, name)),
)
