"""Rows and the marker of their batch in one Redis pipeline without MULTI; a batch that has a marker is skipped.
Flaw: lost.

A crash in the middle of the pipeline leaves rows without a marker: the replay writes them again, over themselves.

Breaks when the server refuses a row and not the marker, as one does whose memory is full for a moment: a pipeline goes
on behind a command that failed, and execute() raises when all have been sent. The batch comes again, finds its marker,
and is skipped. With MULTI nothing is done if one is refused (redis.io, "Transactions").
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import redis
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
SERVICES = ("redis",)
FLAW = ("lost",)

ROWS, LEDGER = "rows", "ledger"


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    batch = f"{df.sparkSession.sparkContext.getLocalProperty('sql.streaming.queryId')}:{batch_id}"
    rows = df.toArrow().to_pylist()
    with redis.Redis.from_url(target.redis) as client, client.pipeline(transaction=False) as pipeline:
        if client.sismember(LEDGER, batch):
            return
        for number, row in enumerate(rows):
            pipeline.hset(ROWS, f"{batch}:{number}", json.dumps(row, default=str))
        pipeline.sadd(LEDGER, batch)
        pipeline.execute()


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with redis.Redis.from_url(target.redis) as client:
        return [json.loads(row) for row in client.hvals(ROWS)]
