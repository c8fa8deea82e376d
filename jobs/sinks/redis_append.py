"""An entry of a stream for each row (XADD), with an id that the server gives. At-least-once.

A batch that is written again is appended again: entries have new ids. A crash in the middle leaves part of a batch.
"""

from __future__ import annotations

from datetime import datetime
from types import SimpleNamespace
from typing import Any

import redis
from pyspark.sql import DataFrame

GUARANTEE = "at-least-once"
TECHNIQUE = "append"
SERVICES = ("redis",)

STREAM = "events"


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    rows = df.toArrow().to_pylist()
    with redis.Redis.from_url(target.redis) as client, client.pipeline(transaction=False) as pipeline:
        for row in rows:
            pipeline.xadd(STREAM, {name: text(value) for name, value in row.items()})
        pipeline.execute()


def text(value: Any) -> str:
    """Times are in UTC, as toArrow gives them; repr of a double is exact."""
    if isinstance(value, datetime):
        return value.isoformat()
    return repr(value) if isinstance(value, float) else str(value)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with redis.Redis.from_url(target.redis, decode_responses=True) as client:
        return [fields for _, fields in client.xrange(STREAM)]
