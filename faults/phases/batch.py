"""The engine's own logs in the checkpoint: which input a batch has, and that it is done."""

from __future__ import annotations

from ..declarations import Phase
from ._selectors import BATCH, QUERY
from ._sweeps import DRIVER

PHASES = (
    Phase(
        name="batch.offsets",
        edges=("before", "after"),
        selectors=(BATCH, QUERY),
        where="driver",
        sinks="every",
        meaning="the input of the batch is written to the checkpoint (offsets/N); a replayed batch does not repeat it",
        two_phase="begin: what the transaction covers becomes durable",
        source="HDFSMetadataLog.add (OffsetSeqLog)",
        step=20,
        sweep=DRIVER,
    ),
    Phase(
        name="batch.commit",
        edges=("before", "after"),
        selectors=(BATCH, QUERY),
        where="driver",
        sinks="every",
        meaning="the engine notes the batch as done (commits/N); before it, a restart replays the batch",
        two_phase="end: the coordinator forgets the transaction (before it: between sink and engine)",
        source="HDFSMetadataLog.add (CommitLog)",
        step=80,
        sweep=DRIVER,
    ),
)
