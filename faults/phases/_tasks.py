"""Which task a thread of an executor works for, in Byteman's language; shared by families."""

from __future__ import annotations

CONTEXT = "t:org.apache.spark.TaskContext"
CURRENT = f"{CONTEXT} = org.apache.spark.TaskContext.get()"
STREAMING = 't != null && t.getLocalProperty("streaming.sql.batchId") != null'
"""Whether that task belongs to a streaming batch."""

IDENTITY = {
    "query": 't.getLocalProperty("sql.streaming.queryId")',
    "run": 't.getLocalProperty("spark.jobGroup.id")',
    "batch": 't.getLocalProperty("streaming.sql.batchId")',
    "stage": "t.stageId()",
    "partition": "t.partitionId()",
    "attempt": "t.attemptNumber()",
    "task": "t.taskAttemptId()",
}
