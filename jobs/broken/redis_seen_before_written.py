"""Rows that a set has seen are skipped; a row is put into the set first and written then. Flaw: lost.

Breaks when the driver dies, or its connection, between the two: the replay takes the row for written. Redpanda
Connect's manual warns of it for its processor dedupe, whose cache keeps the signature of a message that never left:
"Performing deduplication on a stream using a distributed cache voids any at-least-once guarantees that it previously
had".
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import redis
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("lost",)
SERVICES = ("redis",)

ROWS = "events"
SEEN = "seen"


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    rows = [json.dumps(row, default=datetime.isoformat) for row in df.toArrow().to_pylist()]
    with redis.Redis.from_url(target.redis) as client:
        for row in rows:
            if client.sadd(SEEN, hashlib.sha256(row.encode()).hexdigest()):
                client.rpush(ROWS, row)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with redis.Redis.from_url(target.redis) as client:
        return [json.loads(row) for row in client.lrange(ROWS, 0, -1)]
