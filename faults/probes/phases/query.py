"""query.start: each run of a streaming query, restarts included.

Query id and run id of every report from the driver are in the name of the stream's thread:
``stream execution thread for NAME [id = ..., runId = ...]`` (StreamExecution.prettyIdString); the injector reads them.
"""

from __future__ import annotations

from ..rule import Rule, Spot

RULES = (
    Rule(
        phase="query.start",
        edge="before",
        side="driver",
        spot=Spot(
            "{runtime}.MicroBatchExecution", "runActivatedStream(org.apache.spark.sql.classic.SparkSession)", "ENTRY"
        ),
        fields={},
    ),
)
