"""A hash for each row, named by the job's key: writing a row again sets each field to what it is. Exactly-once by
idempotence.

It holds as long as a replay computes the same rows, and as Redis keeps what it has acknowledged: one that comes back
from a snapshot, from an append-only file synced once a second, or as a replica that was promoted, may lack rows of a
batch that Spark takes for written. The pipeline is no transaction: a reader may see part of a batch.
"""

from __future__ import annotations

import json
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import redis
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "idempotent"
SERVICES = ("redis",)
KEY = "target.key"

PREFIX = "row:"


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    rows = [{name: text(value) for name, value in row.items()} for row in df.toArrow().to_pylist()]
    with redis.Redis.from_url(target.redis) as client, client.pipeline(transaction=False) as pipeline:
        for row in rows:
            pipeline.hset(PREFIX + json.dumps([row[name] for name in target.key]), mapping=row)
        pipeline.execute()


def text(value: Any) -> str:
    """Times are in UTC, as toArrow gives them; repr of a double is exact."""
    if isinstance(value, datetime):
        return value.isoformat()
    return repr(value) if isinstance(value, float) else str(value)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with redis.Redis.from_url(target.redis, decode_responses=True) as client:
        keys = set(client.scan_iter(f"{PREFIX}*", count=1000))  # SCAN may give a key twice
        with client.pipeline(transaction=False) as pipeline:
            for key in keys:
                pipeline.hgetall(key)
            return pipeline.execute()
