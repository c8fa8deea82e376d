"""The tasks of a batch, in the executors (on ``local[n]``: in the driver's JVM)."""

from __future__ import annotations

from ..declarations import Parameter, Phase
from ._selectors import ATTEMPT, BATCH, PARTITION, QUERY, STAGE
from ._sweeps import TASK, WORKER

ROW = Parameter("row", "number", "the nth row that the task writes, from 1", minimum=1, required=True)

PHASES = (
    Phase(
        name="task.run",
        edges=("before", "after"),
        selectors=(BATCH, STAGE, PARTITION, ATTEMPT, QUERY),
        where="executor",
        sinks="every",
        meaning="a task of the batch, from its first step to its last; a failing task has no :after",
        two_phase="a participant at work",
        source="ResultTask.runTask, ShuffleMapTask.runTask",
        step=40,
        sweep=TASK,
    ),
    Phase(
        name="task.row",
        edges=("before",),
        selectors=(BATCH, STAGE, PARTITION, ATTEMPT, ROW, QUERY),
        where="executor",
        sinks="v2",
        meaning="a task asks for its nth row: n-1 rows are with the writer",
        two_phase="a participant in the middle of its work",
        source="WritingSparkTask$IteratorWithMetrics.next",
        step=50,
        serves_worker=True,
        sweep=WORKER,
    ),
    Phase(
        name="task.commit",
        edges=("before", "after"),
        selectors=(BATCH, STAGE, PARTITION, ATTEMPT, QUERY),
        where="executor",
        sinks="v2",
        meaning="a task commits its writer; a Python data source's write() has ended before",
        two_phase="pre-commit: a participant prepares and votes",
        source="DataWriter.commit",
        step=60,
        sweep=TASK,
    ),
)
