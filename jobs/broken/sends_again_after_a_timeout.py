"""Rows and batch id in one MULTI/EXEC, which the client sends again when no answer comes in time. Flaw: duplicated.

Whether the batch is known is asked once, before. A crash does no harm: the replay finds the batch in the ledger. Nor
does a connection that breaks, since the client repeats what timed out, and nothing else.

Breaks when an answer takes longer than the client's timeout: the first EXEC has been carried out, or is on its way, and
so is the second one then. What redis-py's retry_on_timeout does; HTTP clients with retries do it to a POST.
"""

from __future__ import annotations

import json
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import redis
from pyspark.sql import DataFrame
from redis.backoff import NoBackoff
from redis.exceptions import TimeoutError as NoAnswer
from redis.retry import Retry

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("duplicated",)
SERVICES = ("redis",)

ROWS = "events"
LEDGER = "ledger"
SECONDS = 5.0


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    batch, retry = f"{query}:{batch_id}", Retry(NoBackoff(), 2, supported_errors=(NoAnswer,))
    rows = [json.dumps(row, default=datetime.isoformat) for row in df.toArrow().to_pylist()]
    with redis.Redis.from_url(target.redis, socket_timeout=SECONDS, retry=retry) as client:
        if client.sismember(LEDGER, batch):
            return
        with client.pipeline() as pipeline:
            pipeline.sadd(LEDGER, batch)
            if rows:
                pipeline.rpush(ROWS, *rows)
            pipeline.execute()


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with redis.Redis.from_url(target.redis) as client:
        return [json.loads(row) for row in client.lrange(ROWS, 0, -1)]
