"""The phases of a task, and task.worker: which Python worker serves it.

Which query and batch a task works for is in local properties of its job, which reach every executor; the run id is the
job's group. A task outside a streaming batch is not reported. task.row and task.commit are those of the streaming write
itself: a writer that foreachBatch's function opens by a batch write of its own is none of it. A writer's commit that
calls the one it overrides is one commit, which is why a counter of the thread follows how deep it is in one.
"""

from __future__ import annotations

from typing import Literal

from ..rule import Rule, Spot

_TASK = "t:org.apache.spark.TaskContext"
_CURRENT = f"{_TASK} = org.apache.spark.TaskContext.get()"
_STREAMING = 't != null && t.getLocalProperty("streaming.sql.batchId") != null'
_IDENTITY = {
    "query": 't.getLocalProperty("sql.streaming.queryId")',
    "run": 't.getLocalProperty("spark.jobGroup.id")',
    "batch": 't.getLocalProperty("streaming.sql.batchId")',
    "stage": "t.stageId()",
    "partition": "t.partitionId()",
    "attempt": "t.attemptNumber()",
    "task": "t.taskAttemptId()",
}

_RUN = "runTask(org.apache.spark.TaskContext)"
_RESULT = "org.apache.spark.scheduler.ResultTask"
_SHUFFLE = "org.apache.spark.scheduler.ShuffleMapTask"
_ROWS = "org.apache.spark.sql.execution.datasources.v2.WritingSparkTask$IteratorWithMetrics"
_NEXT = "org.apache.spark.sql.catalyst.InternalRow next()"
_WRITER = "org.apache.spark.sql.connector.write.DataWriter"
_FACTORY = "org.apache.spark.sql.execution.streaming.sources.MicroBatchWriterFactory"
_WORKERS = "org.apache.spark.api.python.PythonWorkerFactory"

_THREAD = "java.lang.Thread.currentThread()"
_OWN_WRITER = f'linked("onceproof.writer", {_THREAD}) == $0'
_COMMITS: tuple[tuple[str, str | None], ...] = (("task.commit", "before"), ("task.commit", "after"))


def _depth(at: Literal["ENTRY", "EXIT"], change: str, variant: str) -> Rule:
    """Keeps count of the calls of the writer's commit that a thread is in."""
    return Rule(
        phase=None,
        edge=None,
        side="executor",
        spot=Spot(_WRITER, "commit()", at, interface=True),
        fields={},
        when=_OWN_WRITER,
        variant=variant,
        silent=f"{change}Counter({_THREAD})",
        serves=_COMMITS,
    )


def _run(class_name: str, variant: str) -> tuple[Rule, Rule]:
    bind = (f"{_TASK} = $1",)
    return (
        Rule("task.run", "before", "executor", Spot(class_name, _RUN, "ENTRY"), _IDENTITY, bind, _STREAMING, variant),
        Rule("task.run", "after", "executor", Spot(class_name, _RUN, "EXIT"), _IDENTITY, bind, _STREAMING, variant),
    )


RULES = (
    *_run(_RESULT, "ResultTask"),
    *_run(_SHUFFLE, "ShuffleMapTask"),
    Rule(
        phase=None,
        edge=None,
        side="executor",
        spot=Spot(_FACTORY, "createWriter(int,long)", "EXIT"),
        fields={},
        variant="writer of a streaming batch",
        silent=f'link("onceproof.writer", {_THREAD}, $!); deleteCounter({_THREAD})',
        serves=(*_COMMITS, ("task.row", "before")),
    ),
    Rule(
        phase="task.row",
        edge="before",
        side="executor",
        spot=Spot(_ROWS, _NEXT, "ENTRY"),
        fields={**_IDENTITY, "row": "n"},
        bind=("n:int = incrementCounter($0)", _CURRENT),
        when=f'({{rows}}) && linked("onceproof.writer", {_THREAD}) == $0.dataWriter() && {_STREAMING}',
    ),
    _depth("ENTRY", "increment", "commit of a writer begins"),
    Rule(
        phase="task.commit",
        edge="before",
        side="executor",
        spot=Spot(_WRITER, "commit()", "ENTRY", interface=True),
        fields=_IDENTITY,
        bind=(_CURRENT,),
        when=f"{_STREAMING} && {_OWN_WRITER} && readCounter({_THREAD}) == 1",
    ),
    _depth("EXIT", "decrement", "commit of a writer ends"),
    Rule(
        phase="task.commit",
        edge="after",
        side="executor",
        spot=Spot(_WRITER, "commit()", "EXIT", interface=True),
        fields=_IDENTITY,
        bind=(_CURRENT,),
        when=f"{_STREAMING} && {_OWN_WRITER} && readCounter({_THREAD}) == 0",
    ),
    Rule(
        phase="task.worker",
        edge=None,
        side="executor",
        spot=Spot(_WORKERS, "create()", "EXIT"),
        fields={**_IDENTITY, "worker": "h.pid()"},
        bind=(_CURRENT, "o:scala.Option = $!._2()", "h:java.lang.ProcessHandle = (o.isDefined() ? o.get() : null)"),
        when=f"h != null && {_STREAMING}",
    ),
)
