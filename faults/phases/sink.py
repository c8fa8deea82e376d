"""The sink as the driver sees it: the hand-over of a batch and, within it, a V2 sink's global commit.

A V1 sink (foreachBatch, files) takes a batch by Sink.addBatch; for a V2 sink the hand-over reaches from the writer
factory to the end of MicroBatchWrite.commit. Rules on one spot run in the order of the file: at the end of a V2 commit,
sink.commit:after comes before sink.write:after.

Where a task fails for good, or the commit itself does, Spark calls MicroBatchWrite.abort with the messages of those
tasks that have committed. Spark's own file sink commits a batch by its manifest, ``_spark_metadata/N``, and where that
fails it removes the files that it was to name.

A sink's addBatch may call the one that it overrides, or another sink's: the outermost of a thread is the hand-over.

A rule on an interface makes Byteman look into the ancestry of every class that is loaded, which costs a driver's start
0.7 s: Spark's own V1 sinks are named, and the rule on the interface is for sinks of which nothing is known.
"""

from __future__ import annotations

from ..declarations import Phase
from ..probes.rule import IMPLEMENTATIONS, ITSELF, Rule, Spot
from ._selectors import BATCH, OF_A_QUERY
from ._sweeps import DRIVER

PHASES = (
    Phase(
        name="sink.write",
        edges=("before", "after"),
        selectors=(BATCH, *OF_A_QUERY),
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
        selectors=(BATCH, *OF_A_QUERY),
        where="driver",
        sinks="v2",
        meaning="the sink's global commit on the driver, after every task has committed",
        two_phase="commit (before it: all participants have voted)",
        source="MicroBatchWrite.commit",
        step=70,
        sweep=DRIVER,
    ),
    Phase(
        name="sink.manifest",
        edges=("before", "after"),
        selectors=(BATCH, *OF_A_QUERY),
        where="driver",
        sinks="manifest",
        meaning="Spark's file sink notes the batch's files in its manifest; every task has closed its own",
        two_phase="commit (before it: all participants have voted)",
        source="ManifestFileCommitProtocol.commitJob",
        step=72,
        sweep=DRIVER,
    ),
    Phase(
        name="sink.abort",
        edges=("before", "after"),
        selectors=(BATCH, *OF_A_QUERY),
        where="driver",
        sinks="aborting",
        meaning="the sink gives the batch up, because a task failed for good or its commit did; only then",
        two_phase="abort",
        source="MicroBatchWrite.abort; ManifestFileCommitProtocol.abortJob",
        step=75,
    ),
)

_V2 = "org.apache.spark.sql.execution.streaming.sources.MicroBatchWrite"
_COMMIT = "commit(org.apache.spark.sql.connector.write.WriterCommitMessage[])"
_ABORT = "abort(org.apache.spark.sql.connector.write.WriterCommitMessage[])"
_MANIFEST = "org.apache.spark.sql.execution.streaming.ManifestFileCommitProtocol"
_JOB = "commitJob(org.apache.hadoop.mapreduce.JobContext,scala.collection.immutable.Seq)"
_FACTORY = "createBatchWriterFactory(org.apache.spark.sql.connector.write.PhysicalWriteInfo)"
_V1 = "org.apache.spark.sql.execution.streaming.Sink"
_ADD = "addBatch(long,org.apache.spark.sql.Dataset)"
_ABORT_JOB = "abortJob(org.apache.hadoop.mapreduce.JobContext)"
_EPOCH = {"batch": "$0.epochId"}
_BATCH_ID = {"batch": "$0.batchId"}


def _v1(class_name: str, variant: str, of: str = ITSELF) -> tuple[Rule, Rule]:
    batch = {"batch": "$1"}
    begins, ends = (Spot(class_name, _ADD, at, of) for at in ("ENTRY", "EXIT"))
    deeper, higher = (
        f"n:int = {change}Counter(java.lang.Thread.currentThread())" for change in ("increment", "decrement")
    )
    unknown = of == IMPLEMENTATIONS
    return (
        Rule("sink.write", "before", "driver", begins, batch, (deeper,), "n == 1", variant, any_sink=unknown),
        Rule("sink.write", "after", "driver", ends, batch, (higher,), "n == 0", variant, any_sink=unknown),
    )


RULES = (
    *_v1(_V1, "any V1 sink", IMPLEMENTATIONS),
    *_v1("org.apache.spark.sql.execution.streaming.sources.ForeachBatchSink", "foreachBatch"),
    *_v1("{sinks}.FileStreamSink", "files"),
    Rule("sink.write", "before", "driver", Spot(_V2, _FACTORY, "ENTRY"), _EPOCH, variant="V2"),
    Rule("sink.commit", "before", "driver", Spot(_V2, _COMMIT, "ENTRY"), _EPOCH),
    Rule("sink.commit", "after", "driver", Spot(_V2, _COMMIT, "EXIT"), _EPOCH),
    Rule("sink.write", "after", "driver", Spot(_V2, _COMMIT, "EXIT"), _EPOCH, variant="V2"),
    Rule("sink.abort", "before", "driver", Spot(_V2, _ABORT, "ENTRY"), _EPOCH, variant="V2"),
    Rule("sink.abort", "after", "driver", Spot(_V2, _ABORT, "EXIT"), _EPOCH, variant="V2"),
    Rule("sink.abort", "before", "driver", Spot(_MANIFEST, _ABORT_JOB, "ENTRY"), _BATCH_ID, variant="files"),
    Rule("sink.abort", "after", "driver", Spot(_MANIFEST, _ABORT_JOB, "EXIT"), _BATCH_ID, variant="files"),
    Rule("sink.manifest", "before", "driver", Spot(_MANIFEST, _JOB, "ENTRY"), _BATCH_ID),
    Rule("sink.manifest", "after", "driver", Spot(_MANIFEST, _JOB, "EXIT"), _BATCH_ID),
)
