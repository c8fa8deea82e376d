"""sink.write and sink.commit: the hand-over of a batch, and within it a V2 sink's global commit.

A V1 sink (foreachBatch, files) takes a batch by Sink.addBatch; for a V2 sink the hand-over reaches from the writer
factory to the end of MicroBatchWrite.commit. Rules on one spot run in the order of the file: at the end of a V2 commit,
sink.commit:after comes before sink.write:after.
"""

from __future__ import annotations

from ..rule import Rule, Spot

_V2 = "org.apache.spark.sql.execution.streaming.sources.MicroBatchWrite"
_COMMIT = "commit(org.apache.spark.sql.connector.write.WriterCommitMessage[])"
_FACTORY = "createBatchWriterFactory(org.apache.spark.sql.connector.write.PhysicalWriteInfo)"
_V1 = "org.apache.spark.sql.execution.streaming.Sink"
_ADD = "addBatch(long,org.apache.spark.sql.Dataset)"
_EPOCH = {"batch": "$0.epochId"}

RULES = (
    Rule("sink.write", "before", "driver", Spot(_V1, _ADD, "ENTRY", interface=True), {"batch": "$1"}, variant="V1"),
    Rule("sink.write", "after", "driver", Spot(_V1, _ADD, "EXIT", interface=True), {"batch": "$1"}, variant="V1"),
    Rule("sink.write", "before", "driver", Spot(_V2, _FACTORY, "ENTRY"), _EPOCH, variant="V2"),
    Rule("sink.commit", "before", "driver", Spot(_V2, _COMMIT, "ENTRY"), _EPOCH),
    Rule("sink.commit", "after", "driver", Spot(_V2, _COMMIT, "EXIT"), _EPOCH),
    Rule("sink.write", "after", "driver", Spot(_V2, _COMMIT, "EXIT"), _EPOCH, variant="V2"),
)
