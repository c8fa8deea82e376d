"""The rows of a task on their way from the JVM to Python code that takes them one by one.

So do the functions of ``foreachPartition`` and of other operations of an RDD, the writer of ``foreach``, and functions
that are no pandas ones. Rows go in pieces of one and more, pickled. Where the task fails in between, as it reads from
Kafka or fetches a shuffle, the stream just ends, and Python takes that for the end of the rows
(``FramedSerializer.load_stream``); Arrow's streams, which others take, are refused there.
"""

from __future__ import annotations

from ..declarations import Phase
from ..probes.rule import Rule, Spot
from ._selectors import ATTEMPT, BATCH, PARTITION, QUERY, STAGE
from ._tasks import CURRENT, IDENTITY, STREAMING

PHASES = (
    Phase(
        name="task.input",
        edges=("before",),
        selectors=(BATCH, STAGE, PARTITION, ATTEMPT, QUERY),
        where="executor",
        sinks="python",
        meaning="a task hands the next piece of its rows, or their end, to Python code that takes them one by one (of "
        "foreach and foreachPartition, say)",
        two_phase="a participant in the middle of its work",
        source="PythonRDD.writeNextElementToStream",
        step=48,
    ),
)

_HANDS_ON = "writeNextElementToStream(scala.collection.Iterator,java.io.DataOutputStream)"

RULES = (
    Rule(
        phase="task.input",
        edge="before",
        side="executor",
        spot=Spot("org.apache.spark.api.python.PythonRDD$", _HANDS_ON, "ENTRY"),
        fields=IDENTITY,
        bind=(CURRENT,),
        when=STREAMING,
    ),
)
