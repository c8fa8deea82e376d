"""The engine's own part of a batch: what input it gets, and the two logs in the checkpoint that say so and that it is
done.

The engine asks a source again and again until there is something to read, at most every 10 ms. batch.plan is reported
when it asks for the first time for a batch of a run. It has been planned at batch.offsets:before. For a batch that is
replayed the source is not asked.

Both logs are written by HDFSMetadataLog.add. ``add`` also writes sources/0 and _spark_metadata, so the log's class is
compared. A batch that is replayed after a restart has its offsets already: batch.offsets is reported once for each
batch. ``add`` returns false for a batch that another run has written already: then nothing was written, and there is no
:after. A continuous query has epochs in the place of batches, and writes the same two logs for each.

Asynchronous progress tracking hands both to a thread of its own, and only for batches that begin an interval after the
last that it wrote down: there is a :before where it does so, and no :after. What input its batches have is reported by
batch.input, which is no phase.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plans import Edge
from ..declarations import EXECUTIONS, Execution, Phase
from ..probes.rule import Rule, Spot
from ._selectors import BATCH, OF_A_QUERY
from ._sweeps import DRIVER

_ASYNC: tuple[tuple[Execution, Edge], ...] = (("async progress", "after"),)

PHASES = (
    Phase(
        name="batch.plan",
        edges=("before",),
        selectors=(BATCH, *OF_A_QUERY),
        where="driver",
        sinks="every",
        meaning="the source is asked what input the batch gets; of a batch that is replayed it is not",
        two_phase="before begin: what the transaction will cover is chosen",
        source="MicroBatchExecution.constructNextBatch",
        step=15,
        traced=None,
    ),
    Phase(
        name="batch.offsets",
        edges=("before", "after"),
        selectors=(BATCH, *OF_A_QUERY),
        where="driver",
        sinks="every",
        meaning="the input of the batch is written to the checkpoint (offsets/N); a replayed batch does not repeat it",
        two_phase="begin: what the transaction covers becomes durable",
        source="HDFSMetadataLog.add (OffsetSeqLog)",
        step=20,
        sweep=DRIVER,
        executions=tuple(EXECUTIONS),
        lack=_ASYNC,
    ),
    Phase(
        name="batch.commit",
        edges=("before", "after"),
        selectors=(BATCH, *OF_A_QUERY),
        where="driver",
        sinks="every",
        meaning="the engine notes the batch as done (commits/N); before it, a restart replays the batch",
        two_phase="end: the coordinator forgets the transaction (before it: between sink and engine)",
        source="HDFSMetadataLog.add (CommitLog)",
        step=80,
        sweep=DRIVER,
        executions=tuple(EXECUTIONS),
        lack=_ASYNC,
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


def _asynchronous(phase: str, log: str) -> Rule:
    return Rule(
        phase=phase,
        edge="before",
        side="driver",
        spot=Spot(f"{{checkpointing}}.{log}", "addNewBatchByStreamAsync(long,scala.Function1)", "ENTRY"),
        fields={"batch": "$1"},
        variant="asynchronous",
    )


_OFFSET = "org.apache.spark.sql.connector.read.streaming.Offset"

RULES = (
    Rule(
        phase="batch.plan",
        edge="before",
        side="driver",
        spot=Spot("{runtime}.MicroBatchExecution", "constructNextBatch", "ENTRY"),
        fields={"batch": "$1.batchId()"},
        when="!$1.isCurrentBatchConstructed() && flag($1)",
    ),
    *_rules("batch.offsets", "OffsetSeqLog"),
    *_rules("batch.commit", "CommitLog"),
    _asynchronous("batch.offsets", "AsyncOffsetSeqLog"),
    _asynchronous("batch.commit", "AsyncCommitLog"),
    Rule(
        phase="batch.input",
        edge=None,
        side="driver",
        spot=Spot("{runtime}.MicroBatchExecution", "runBatch", "ENTRY"),
        fields={
            "batch": "$1.batchId()",
            "begin": '(b == null ? "{}" : b.json())',
            "end": '(e == null ? "{}" : e.json())',
        },
        bind=(
            f"b:{_OFFSET} = ($1.startOffsets().isEmpty() ? null : $1.startOffsets().values().head())",
            f"e:{_OFFSET} = ($1.endOffsets().isEmpty() ? null : $1.endOffsets().values().head())",
        ),
    ),
)
