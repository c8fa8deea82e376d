"""Rows and the batch's id in one MULTI/EXEC: a batch that is in the ledger is skipped. Exactly-once without row keys.

The ledger is watched while it is looked into: of two writers of a batch one's EXEC is refused, and it looks again. So
it does if the answer to its EXEC was lost. What a dead driver has queued behind MULTI is gone with its connection. The
ledger has the query's id besides the batch's, because a query with a new checkpoint counts from 0 again, and it does
not expire: a restart may come at any time.

It holds as long as Redis keeps what it has acknowledged: one that comes back from a snapshot, from an append-only file
synced once a second, or as a replica that was promoted, may lack a batch that Spark takes for written.
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
SERVICES = ("redis",)
ATOMIC = True

ROWS = "events"
LEDGER = "ledger"


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = [json.dumps(row, default=datetime.isoformat) for row in df.toArrow().to_pylist()]
    with redis.Redis.from_url(target.redis) as client:
        client.transaction(partial(append, f"{query}:{batch_id}", rows), LEDGER)


def append(batch: str, rows: Sequence[str], pipeline: redis.client.Pipeline) -> None:
    """What is called behind multi() is queued, and executed at once."""
    if not pipeline.sismember(LEDGER, batch):
        pipeline.multi()
        pipeline.sadd(LEDGER, batch)
        if rows:
            pipeline.rpush(ROWS, *rows)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with redis.Redis.from_url(target.redis) as client:
        return [json.loads(row) for row in client.lrange(ROWS, 0, -1)]
