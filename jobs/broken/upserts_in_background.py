"""A batch's upserts are left to a thread of their own, so that the next batch need not wait for them. Flaw: lost.

The thread does one batch after the other, and the process does not end before it has done them all. But Spark takes a
batch for done as soon as the function has returned, and does not hand it over again.

Breaks when the driver dies behind the commit of a batch whose rows are still on their way. Seen wherever a producer's
send() stands without flush(), or a future without result().
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import redis
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "idempotent"
FLAW = ("lost",)
SERVICES = ("redis",)
KEY = "target.key"

PREFIX = "row:"

writer = ThreadPoolExecutor(1)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    rows = [{name: text(value) for name, value in row.items()} for row in df.toArrow().to_pylist()]
    writer.submit(upsert, target, rows)


def upsert(target: SimpleNamespace, rows: Sequence[dict[str, str]]) -> None:
    with redis.Redis.from_url(target.redis) as client, client.pipeline(transaction=False) as pipeline:
        for row in rows:
            pipeline.hset(PREFIX + json.dumps([row[name] for name in target.key]), mapping=row)
        pipeline.execute()


def text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return repr(value) if isinstance(value, float) else str(value)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with redis.Redis.from_url(target.redis, decode_responses=True) as client:
        keys = set(client.scan_iter(f"{PREFIX}*", count=1000))
        with client.pipeline(transaction=False) as pipeline:
            for key in keys:
                pipeline.hgetall(key)
            return pipeline.execute()
