"""The streaming query: once for each run, restarts included, its beginning and its end.

A query ends when all its input is done, when it is stopped, or by an error: query.stop is in all three, before its
sources are closed.

Query id and run id of every report from the driver are in the name of the stream's thread:
``stream execution thread for NAME [id = ..., runId = ...]`` (StreamExecution.prettyIdString); the injector reads them.

query.writer and query.end are no phases. One tells that the job asks for the writer of its stream, which the sink's
attach gets; the other that a query has ended, well or not (StreamExecution.runStream, at its end).
"""

from __future__ import annotations

from ..declarations import EXECUTIONS, Phase
from ..probes.rule import Rule, Spot
from ._selectors import OF_A_QUERY
from ._sweeps import DRIVER

PHASES = (
    Phase(
        name="query.start",
        edges=("before",),
        selectors=OF_A_QUERY,
        where="driver",
        sinks="every",
        meaning="a run of the query begins: before it reads its checkpoint",
        two_phase="the coordinator starts, or recovers",
        source="MicroBatchExecution.runActivatedStream, ContinuousExecution.runActivatedStream",
        step=10,
        sweep=DRIVER,
        executions=tuple(EXECUTIONS),
    ),
    Phase(
        name="query.stop",
        edges=("before",),
        selectors=OF_A_QUERY,
        where="driver",
        sinks="every",
        meaning="a run of the query ends, well or not: before it closes its sources",
        two_phase="the coordinator ends",
        source="StreamExecution.stopSources",
        step=85,
        executions=tuple(EXECUTIONS),
        traced=None,
    ),
)

_START = "runActivatedStream(org.apache.spark.sql.classic.SparkSession)"
_CONTINUOUS = "org.apache.spark.sql.execution.streaming.continuous.ContinuousExecution"
_WRITER = "org.apache.spark.sql.classic.DataStreamWriter"
_TERMINATED = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryTerminatedEvent"
_MADE = "<init>(java.util.UUID,java.util.UUID,scala.Option,scala.Option)"
_OF_ROWS = "<init>(org.apache.spark.sql.classic.Dataset)"

RULES = (
    Rule("query.stop", "before", "driver", Spot("{runtime}.StreamExecution", "stopSources()", "ENTRY"), fields={}),
    *(
        Rule("query.start", "before", "driver", Spot(execution, _START, "ENTRY"), fields={}, variant=variant)
        for execution, variant in (("{runtime}.MicroBatchExecution", ""), (_CONTINUOUS, "continuous"))
    ),
    Rule("query.writer", None, "driver", Spot(_WRITER, _OF_ROWS, "EXIT"), {"event": '"query.writer"'}),
    Rule("query.end", None, "driver", Spot(_TERMINATED, _MADE, "EXIT"), {"event": '"query.ended"'}),
)
