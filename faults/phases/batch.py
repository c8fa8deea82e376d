"""The engine's own logs in the checkpoint: which input a batch has, and that it is done.

Both are written by HDFSMetadataLog.add. ``add`` also writes sources/0 and _spark_metadata, so the log's class is
compared. A batch that is replayed after a restart has its offsets already: batch.offsets is reported once for each
batch. ``add`` returns false for a batch that another run has written already: then nothing was written, and there is no
:after. The logs of asynchronous progress tracking have other classes and are not reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..declarations import Phase
from ..probes.rule import Rule, Spot
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


def _rules(phase: str, log: str) -> Iterator[Rule]:
    for edge, at, written in (("before", "ENTRY", ""), ("after", "EXIT", " && $!")):
        yield Rule(
            phase=phase,
            edge=edge,  # type: ignore[arg-type]
            side="driver",
            spot=Spot("{checkpointing}.HDFSMetadataLog", "add(long,java.lang.Object)", at),  # type: ignore[arg-type]
            when=f'$0.getClass().getSimpleName().equals("{log}"){written}',
            fields={"batch": "$1"},
        )


RULES = (*_rules("batch.offsets", "OffsetSeqLog"), *_rules("batch.commit", "CommitLog"))
