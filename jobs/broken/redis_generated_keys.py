"""A hash for each row, as in an upsert, but named by a new UUID: nothing is overwritten. Flaw: duplicated.

Breaks when the driver dies after the first rows are there: the replay gives them new names. spark-redis does so where
no key.column is given: "By default, Spark-Redis generates UUID identifier for each row" (doc/dataframe.md).
"""

from __future__ import annotations

import uuid
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import redis
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "idempotent"
FLAW = ("duplicated",)
SERVICES = ("redis",)

PREFIX = "row:"


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    rows = df.toArrow().to_pylist()
    with redis.Redis.from_url(target.redis) as client, client.pipeline(transaction=False) as pipeline:
        for row in rows:
            pipeline.hset(f"{PREFIX}{uuid.uuid4()}", mapping={name: text(value) for name, value in row.items()})
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
