"""Rows and batch id between MULTI and EXEC, the ledger watched, each command sent by a pooled client. Flaw: lost.

The batch goes out in chunks, so that no command has thousands of arguments; the server queues them, and does all of
them at EXEC or none.

Breaks when the connection ends between two of the commands, while none is on its way: the server closes idle ones, or
a firewall does. MULTI and WATCH belong to a connection, not to the client: before each command the pool looks whether
its connection is still there, and opens another one where it is not (redis.ConnectionPool.get_connection). There
nothing is queued: the rest of the chunks, and the ledger's entry behind them, are done at once. EXEC is refused ("EXEC
without MULTI"), the driver dies of it, and its replay finds the batch in the ledger: the chunks before are lost. A
connection that ends while an answer is waited for is an error, and does no harm. A pipeline (`client.pipeline()`) keeps
one connection from WATCH to EXEC.
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
FLAW = ("lost",)
SERVICES = ("redis",)
ATOMIC = True

ROWS = "events"
LEDGER = "ledger"
CHUNK = 200


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    batch = f"{query}:{batch_id}"
    rows = [json.dumps(row, default=datetime.isoformat) for row in df.toArrow().to_pylist()]
    with redis.Redis.from_url(target.redis) as client:
        client.execute_command("WATCH", LEDGER)
        if client.sismember(LEDGER, batch):
            return
        client.execute_command("MULTI")
        for start in range(0, len(rows), CHUNK):
            client.rpush(ROWS, *rows[start : start + CHUNK])
        client.sadd(LEDGER, batch)
        if client.execute_command("EXEC") is None:
            raise RuntimeError(f"batch {batch}: another writer changed the ledger")


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with redis.Redis.from_url(target.redis) as client:
        return [json.loads(row) for row in client.lrange(ROWS, 0, -1)]
