"""The sink as the driver sees it: the hand-over of a batch and its global commit."""

from __future__ import annotations

from ..declarations import Phase
from ._selectors import BATCH, QUERY
from ._sweeps import DRIVER

PHASES = (
    Phase(
        name="sink.write",
        edges=("before", "after"),
        selectors=(BATCH, QUERY),
        where="driver",
        sinks="every",
        meaning="the whole hand-over of the batch to the sink: V1 addBatch, foreachBatch's function, or V2 from the "
        "writer factory to the commit",
        two_phase="the whole transaction",
        source="Sink.addBatch; MicroBatchWrite.createBatchWriterFactory to MicroBatchWrite.commit",
        step=30,
        sweep=DRIVER,
    ),
    Phase(
        name="sink.commit",
        edges=("before", "after"),
        selectors=(BATCH, QUERY),
        where="driver",
        sinks="v2",
        meaning="the sink's global commit on the driver, after every task has committed",
        two_phase="commit (before it: all participants have voted)",
        source="MicroBatchWrite.commit",
        step=70,
        sweep=DRIVER,
    ),
)
