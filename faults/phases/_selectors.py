"""Selectors that several families share."""

from __future__ import annotations

from ..declarations import Parameter

QUERY = Parameter("query", "text", "id of the streaming query: stable over restarts on one checkpoint")
RUN = Parameter("run", "number", "the nth run of the query, from 1: there is a new one at each restart", minimum=1)
OF_A_QUERY = (QUERY, RUN)
BATCH = Parameter("batch", "number", "id of the micro-batch, from 0", sample="1")
WHEN = Parameter(
    "when",
    "text",
    "start: before the query starts (attach, transform), instead of inside a batch",
    choices=("start",),
)
STAGE = Parameter("stage", "number", "the nth stage of the batch in which a task begins, from 1", minimum=1)
PARTITION = Parameter("partition", "number", "number of the task within its stage, from 0 (no Kafka partition)")
ATTEMPT = Parameter("attempt", "number", "attempt of the task, from 0; a retry has a higher one")
