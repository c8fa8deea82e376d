"""A batch is filled into a staging list in chunks, and takes its place by RENAME, which is atomic. Flaw: duplicated.

A whole batch may be staged and renamed again: it replaces itself. Breaks when the driver dies, or its connection,
between two chunks: the replay does not empty the staging list, and fills the batch in behind what it finds there.
"""

from __future__ import annotations

import json
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import redis
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "atomic rename"
FLAW = ("duplicated",)
SERVICES = ("redis",)
ATOMIC = True

STAGING = "staging"
PREFIX = "batch:"
CHUNK = 50


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = [json.dumps(row, default=datetime.isoformat) for row in df.toArrow().to_pylist()]
    with redis.Redis.from_url(target.redis) as client:
        for start in range(0, len(rows), CHUNK):
            client.rpush(STAGING, *rows[start : start + CHUNK])
        if rows:
            client.rename(STAGING, f"{PREFIX}{query}:{batch_id}")


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with redis.Redis.from_url(target.redis) as client:
        batches = sorted(set(client.scan_iter(f"{PREFIX}*", count=1000)))
        return [json.loads(row) for batch in batches for row in client.lrange(batch, 0, -1)]
