"""The rows of a task on their way from the JVM to its Python code.

They go in pieces: pickled ones of one row and more to a function of foreachPartition, Arrow's batches to a data
source's ``write`` and to functions of pandas. Where the task fails in between, as it reads from Kafka or fetches a
shuffle, the stream just ends, and Python takes that for the end of the rows (``FramedSerializer.load_stream``; a stream
of Arrow may end behind any batch). What has been handed on is sent some kB at a time (``spark.buffer.size``), so Python
may have less by then.

A writer of foreach has its rows from another thread, of which it is not known for which task it works: there
``task.row`` says as much.
"""

from __future__ import annotations

from ..declarations import Phase
from ..probes.rule import SUBCLASSES, Rule, Spot
from ._selectors import ATTEMPT, BATCH, OF_A_QUERY, PARTITION, STAGE
from ._tasks import CURRENT, IDENTITY, STREAMING

PHASES = (
    Phase(
        name="task.input",
        edges=("before",),
        selectors=(BATCH, STAGE, PARTITION, ATTEMPT, *OF_A_QUERY),
        where="executor",
        sinks="python",
        meaning="a task hands the next piece of its rows, or their end, to Python code that runs in it",
        two_phase="a participant in the middle of its work",
        source="BasePythonRunner$Writer.writeNextInputToStream",
        step=48,
    ),
)

_WRITER = "org.apache.spark.api.python.BasePythonRunner$Writer"

RULES = (
    Rule(
        phase="task.input",
        edge="before",
        side="executor",
        spot=Spot(_WRITER, "writeNextInputToStream(java.io.DataOutputStream)", "ENTRY", of=SUBCLASSES),
        fields=IDENTITY,
        bind=(CURRENT,),
        when=STREAMING,
    ),
)
