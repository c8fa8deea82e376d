"""Loading the state of a stateful operator: a task reads the version that the batch before has committed.

Nothing is written, so a crash here is the same as one before the task: it is no point of a sweep. It is reported where
a recovery is measured, because a new driver loads all of the state anew.
"""

from __future__ import annotations

from ..declarations import Phase
from ..probes.rule import Rule, Spot
from ._selectors import ATTEMPT, BATCH, PARTITION, QUERY, STAGE
from ._tasks import CURRENT, IDENTITY, STREAMING
from .state import OPERATOR, STORE

PHASES = (
    Phase(
        name="state.load",
        edges=("before", "after"),
        selectors=(BATCH, STAGE, PARTITION, ATTEMPT, OPERATOR, STORE, QUERY),
        where="executor",
        sinks="stateful",
        meaning="a task loads the state of its partition: the version that the batch before has committed",
        two_phase="a participant recovers its own record",
        source="RocksDBStateStoreProvider and HDFSBackedStateStoreProvider: getStore, getReadStore",
        step=35,
    ),
)

_STATE = "org.apache.spark.sql.execution.streaming.state."
_FIELDS = {
    **IDENTITY,
    "operator": "$0.stateStoreId().operatorId()",
    "store": "$0.stateStoreId().storeName()",
    "version": "$1",
}


def _load(provider: str, method: str, variant: str) -> tuple[Rule, Rule]:
    before, after = Spot(f"{_STATE}{provider}", method, "ENTRY"), Spot(f"{_STATE}{provider}", method, "EXIT")
    return (
        Rule("state.load", "before", "executor", before, _FIELDS, (CURRENT,), STREAMING, variant),
        Rule("state.load", "after", "executor", after, _FIELDS, (CURRENT,), STREAMING, variant),
    )


RULES = (
    *_load("RocksDBStateStoreProvider", "getStore", "RocksDB"),
    *_load("RocksDBStateStoreProvider", "getReadStore", "RocksDB, to read"),
    *_load("HDFSBackedStateStoreProvider", "getStore", "HDFS"),
    *_load("HDFSBackedStateStoreProvider", "getReadStore", "HDFS, to read"),
)
"""By the methods' names alone: their arguments differ from release to release, the version is the first in all. An
operator that reads its state before it writes it opens it for reading, and then again."""
