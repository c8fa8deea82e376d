"""The tasks of a batch, in the executors (on ``local[n]``: in the driver's JVM).

Which query and batch a task works for is in local properties of its job, which reach every executor; the run id is the
job's group. A task outside a streaming batch is not reported. task.commit is that of the streaming write itself: a
writer that foreachBatch's function opens by a batch write of its own is none of it. A writer's commit that calls the
one it overrides is one commit, which is why a counter of the thread follows how deep it is in one. task.worker is no
phase: it tells which Python worker serves a task.

task.row is one of Spark's writers of files, too, and of its batch writer for Kafka: where foreachBatch's function uses
several, their stages tell which one is meant. A crash there differs from others only by the requests and changes of
files that the task has made by then, and these are phases of their own: only the traces of V2 sinks have task.row.
"""

from __future__ import annotations

from typing import Literal

from ..declarations import Parameter, Phase
from ..probes.rule import IMPLEMENTATIONS, Rule, Spot
from ._selectors import ATTEMPT, BATCH, OF_A_QUERY, PARTITION, STAGE
from ._sweeps import TASK, WORKER
from ._tasks import CONTEXT, CURRENT, IDENTITY, STREAMING

ROW = Parameter("row", "number", "the nth row that the task writes, from 1", minimum=1, required=True, sample="5")

PHASES = (
    Phase(
        name="task.run",
        edges=("before", "after"),
        selectors=(BATCH, STAGE, PARTITION, ATTEMPT, *OF_A_QUERY),
        where="executor",
        sinks="every",
        meaning="a task of the batch, from its first step to its last; a failing task has no :after",
        two_phase="a participant at work",
        source="ResultTask.runTask, ShuffleMapTask.runTask",
        step=40,
        sweep=TASK,
    ),
    Phase(
        name="task.open",
        edges=("after",),
        selectors=(BATCH, STAGE, PARTITION, ATTEMPT, *OF_A_QUERY),
        where="executor",
        sinks="v2",
        meaning="a task has opened its writer; no row is with it",
        two_phase="a participant joins",
        source="MicroBatchWriterFactory.createWriter",
        step=45,
    ),
    Phase(
        name="task.row",
        edges=("before",),
        selectors=(BATCH, STAGE, PARTITION, ATTEMPT, ROW, *OF_A_QUERY),
        where="executor",
        sinks="rows",
        meaning="a task is at its nth row: n-1 rows are with the writer",
        two_phase="a participant in the middle of its work",
        source="WritingSparkTask$IteratorWithMetrics.next; FileFormatDataWriter.writeWithMetrics; "
        "KafkaRowWriter.sendRow",
        traced="v2",
        step=50,
        serves_worker=True,
        sweep=WORKER,
    ),
    Phase(
        name="task.commit",
        edges=("before", "after"),
        selectors=(BATCH, STAGE, PARTITION, ATTEMPT, *OF_A_QUERY),
        where="executor",
        sinks="v2",
        meaning="a task commits its writer; a Python data source's write() has ended before",
        two_phase="pre-commit: a participant prepares and votes",
        source="DataWriter.commit",
        step=60,
        sweep=TASK,
    ),
    Phase(
        name="task.abort",
        edges=("before", "after"),
        selectors=(BATCH, STAGE, PARTITION, ATTEMPT, *OF_A_QUERY),
        where="executor",
        sinks="aborting",
        meaning="a task that failed aborts its writer; only then",
        two_phase="a participant forgets what it has done",
        source="DataWriter.abort; FileFormatDataWriter.abort",
        step=65,
    ),
)

_RUN = "runTask(org.apache.spark.TaskContext)"
_RESULT = "org.apache.spark.scheduler.ResultTask"
_SHUFFLE = "org.apache.spark.scheduler.ShuffleMapTask"
_ROWS = "org.apache.spark.sql.execution.datasources.v2.WritingSparkTask$IteratorWithMetrics"
_FILES = "org.apache.spark.sql.execution.datasources.FileFormatDataWriter"
_TO_FILE = "writeWithMetrics(org.apache.spark.sql.catalyst.InternalRow,long)"
_KAFKA = "org.apache.spark.sql.kafka010.KafkaRowWriter"
_SEND = "sendRow"
_NUMBER = "incrementCounter($0)"
_OF_A_BATCH = '$0.getClass().getSimpleName().equals("KafkaWriteTask")'
"""The streaming write has a class of its own."""
_NEXT = "org.apache.spark.sql.catalyst.InternalRow next()"
_WRITER = "org.apache.spark.sql.connector.write.DataWriter"
_FACTORY = "org.apache.spark.sql.execution.streaming.sources.MicroBatchWriterFactory"
_WORKERS = "org.apache.spark.api.python.PythonWorkerFactory"

_TID = '(new java.io.File("/proc/thread-self")).getCanonicalFile().getName()'
"""The thread's number, as Linux has it: proc(5)."""
_THREAD = "java.lang.Thread.currentThread()"
_OWN_WRITER = f'linked("onceproof.writer", {_THREAD}) == $0'
Points = tuple[tuple[str, str | None], ...]
_COMMITS: Points = (("task.commit", "before"), ("task.commit", "after"))


_ABORTS: Points = (("task.abort", "before"), ("task.abort", "after"))


def _depth(at: Literal["ENTRY", "EXIT"], change: str, variant: str, method: str, counter: str, serves: Points) -> Rule:
    """Keeps count of the calls of a method of the writer's that a thread is in."""
    return Rule(
        phase=None,
        edge=None,
        side="executor",
        spot=Spot(_WRITER, method, at, of=IMPLEMENTATIONS),
        fields={},
        when=_OWN_WRITER,
        variant=variant,
        silent=f"{change}Counter({counter})",
        serves=serves,
    )


def _abort(edge: Literal["before", "after"], at: Literal["ENTRY", "EXIT"], depth: int) -> Rule:
    """An abort that calls the one it overrides is one abort: a counter of the writer follows how deep it is in one."""
    return Rule(
        phase="task.abort",
        edge=edge,
        side="executor",
        spot=Spot(_WRITER, "abort()", at, of=IMPLEMENTATIONS),
        fields=IDENTITY,
        bind=(CURRENT,),
        when=f"{STREAMING} && {_OWN_WRITER} && readCounter($0) == {depth}",
    )


def _abort_of_files(edge: Literal["before", "after"], at: Literal["ENTRY", "EXIT"]) -> Rule:
    """The writer of Spark's file sink is no task's own: V1 tasks make theirs."""
    spot = Spot(_FILES, "abort()", at)
    return Rule("task.abort", edge, "executor", spot, IDENTITY, (CURRENT,), STREAMING, variant="files")


def _row(variant: str, writer: str, method: str, number: str = _NUMBER, when: str = STREAMING) -> Rule:
    """A row that is about to be with a kind of writer, which counts those of each of them."""
    return Rule(
        phase="task.row",
        edge="before",
        side="executor",
        spot=Spot(writer, method, "ENTRY"),
        fields={**IDENTITY, "row": "n"},
        bind=(f"n:int = {number}", CURRENT),
        when=f"({{rows}}) && {when}",
        variant=variant,
    )


def _run(class_name: str, variant: str) -> tuple[Rule, Rule]:
    bind = (f"{CONTEXT} = $1",)
    begun = {**IDENTITY, "tid": _TID}
    return (
        Rule("task.run", "before", "executor", Spot(class_name, _RUN, "ENTRY"), begun, bind, STREAMING, variant),
        Rule("task.run", "after", "executor", Spot(class_name, _RUN, "EXIT"), IDENTITY, bind, STREAMING, variant),
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
        serves=(*_COMMITS, *_ABORTS, ("task.row", "before")),
    ),
    Rule(
        phase="task.open",
        edge="after",
        side="executor",
        spot=Spot(_FACTORY, "createWriter(int,long)", "EXIT"),
        fields=IDENTITY,
        bind=(CURRENT,),
        when=STREAMING,
    ),
    _row("", _ROWS, _NEXT, when=f'linked("onceproof.writer", {_THREAD}) == $0.dataWriter() && {STREAMING}'),
    _row("files", _FILES, _TO_FILE),
    _row("Kafka", _KAFKA, _SEND, number=f"({_OF_A_BATCH} ? {_NUMBER} : 0)"),
    _depth("ENTRY", "increment", "commit of a writer begins", "commit()", _THREAD, _COMMITS),
    Rule(
        phase="task.commit",
        edge="before",
        side="executor",
        spot=Spot(_WRITER, "commit()", "ENTRY", of=IMPLEMENTATIONS),
        fields=IDENTITY,
        bind=(CURRENT,),
        when=f"{STREAMING} && {_OWN_WRITER} && readCounter({_THREAD}) == 1",
    ),
    _depth("EXIT", "decrement", "commit of a writer ends", "commit()", _THREAD, _COMMITS),
    Rule(
        phase="task.commit",
        edge="after",
        side="executor",
        spot=Spot(_WRITER, "commit()", "EXIT", of=IMPLEMENTATIONS),
        fields=IDENTITY,
        bind=(CURRENT,),
        when=f"{STREAMING} && {_OWN_WRITER} && readCounter({_THREAD}) == 0",
    ),
    _depth("ENTRY", "increment", "abort of a writer begins", "abort()", "$0", _ABORTS),
    _abort("before", "ENTRY", 1),
    _depth("EXIT", "decrement", "abort of a writer ends", "abort()", "$0", _ABORTS),
    _abort("after", "EXIT", 0),
    _abort_of_files("before", "ENTRY"),
    _abort_of_files("after", "EXIT"),
    Rule(
        phase="task.worker",
        edge=None,
        side="executor",
        spot=Spot(_WORKERS, "create()", "EXIT"),
        fields={**IDENTITY, "worker": "h.pid()"},
        bind=(CURRENT, "o:scala.Option = $!._2()", "h:java.lang.ProcessHandle = (o.isDefined() ? o.get() : null)"),
        when=f"h != null && {STREAMING}",
    ),
)
