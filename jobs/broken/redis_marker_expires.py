"""Rows and the batch's marker in one MULTI/EXEC, as it should be; but the marker expires. Flaw: duplicated.

Breaks when the driver dies after EXEC and comes back when the marker has gone: the batch is written again. Markers are
given a time to live so that they do not pile up; it has to be longer than any outage, which nobody knows beforehand.
Amazon SQS has the same limit by design: its FIFO queues know a deduplication id for five minutes. Here it is a second,
which is shorter than a driver's start.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from types import SimpleNamespace
from typing import Any

import redis
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("duplicated",)
SERVICES = ("redis",)

ROWS = "events"
SECONDS = 1


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    marker = f"done:{df.sparkSession.sparkContext.getLocalProperty('sql.streaming.queryId')}:{batch_id}"
    rows = [json.dumps(row, default=datetime.isoformat) for row in df.toArrow().to_pylist()]
    with redis.Redis.from_url(target.redis) as client:
        client.transaction(partial(append, marker, rows), marker)


def append(marker: str, rows: Sequence[str], pipeline: redis.client.Pipeline) -> None:
    if not pipeline.exists(marker):
        pipeline.multi()
        pipeline.set(marker, "1", ex=SECONDS)
        if rows:
            pipeline.rpush(ROWS, *rows)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with redis.Redis.from_url(target.redis) as client:
        return [json.loads(row) for row in client.lrange(ROWS, 0, -1)]
