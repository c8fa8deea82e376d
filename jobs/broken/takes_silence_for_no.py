"""Rows and batch id by one script of Redis under a fencing token; a lost answer is looked into once. Flaw: duplicated.

Each hand-over raises a counter, its token, and only then looks whether the batch is known. The script writes if the
token is still the counter's value: whoever was taken for dead is refused. Where the connection ends in place of an
answer, the script may have run: that is looked up, and if not, it is sent once more.

Breaks when the script has run, its answer is lost, and the look alone fails (a proxy that still has the old backend, a
name with two addresses of which one is dead): the second try succeeds, and all rows are there twice. The look and the
second try are two requests; an error of the first is no answer.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import redis
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("duplicated",)
SERVICES = ("redis",)

TOKEN, DONE, ROWS = "token", "done", "events"

WRITE = """
    if redis.call('GET', KEYS[1]) ~= ARGV[1] then
        return redis.error_reply('FENCED another driver has this batch')
    end
    redis.call('SADD', KEYS[2], ARGV[2])
    for at = 3, #ARGV do
        redis.call('RPUSH', KEYS[3], ARGV[at])
    end
    return 'OK'
"""


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    batch = f"{query}:{batch_id}"
    rows = [json.dumps(row, default=datetime.isoformat) for row in df.toArrow().to_pylist()]
    with redis.Redis.from_url(target.redis) as client:
        token = client.incr(TOKEN)
        if client.sismember(DONE, batch):
            return
        for last in (False, True):
            try:
                client.eval(WRITE, 3, TOKEN, DONE, ROWS, token, batch, *rows)
                return
            except redis.ConnectionError:
                if last:
                    raise
                # Has it run? If Redis is away, the second try fails, too.
                with suppress(redis.ConnectionError):
                    if client.sismember(DONE, batch):
                        return


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with redis.Redis.from_url(target.redis) as client:
        return [json.loads(row) for row in client.lrange(ROWS, 0, -1)]
