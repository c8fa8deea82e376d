"""A ledger in Redis, looked up and written under a lock with a lease, but written without looking at the lock again.
Flaw: duplicated.

Breaks when the driver stands still between the look and the EXEC for longer than the lease (a long garbage collection,
a suspended machine): its successor takes the lock, finds no entry, writes the batch and commits it; then the first one
goes on where it was. A lease needs a fencing token (M. Kleppmann, "How to do distributed locking", 2016).
"""

from __future__ import annotations

import json
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import redis
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("duplicated",)
SERVICES = ("redis",)

ROWS = "events"
LEDGER = "ledger"
LEASE_SECONDS = 5
WAIT_SECONDS = 60


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    batch = f"{query}:{batch_id}"
    rows = [json.dumps(row, default=datetime.isoformat) for row in df.toArrow().to_pylist()]
    with (
        redis.Redis.from_url(target.redis) as client,
        client.lock("writer", timeout=LEASE_SECONDS, blocking_timeout=WAIT_SECONDS),
    ):
        if client.sismember(LEDGER, batch):
            return
        pipeline = client.pipeline(transaction=True)
        pipeline.sadd(LEDGER, batch)
        if rows:
            pipeline.rpush(ROWS, *rows)
        pipeline.execute()


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with redis.Redis.from_url(target.redis) as client:
        return [json.loads(row) for row in client.lrange(ROWS, 0, -1)]
