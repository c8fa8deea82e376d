"""An outbox in Redis and a ledger in Postgres: what Postgres refuses waits for the next batch. Flaw: lost.

Each batch is pushed to the outbox; then all that is there is popped, the newest first, and stored in Postgres, rows and
the batch's entry in one transaction. If Postgres gives an error, the entry is pushed back, and the batch counts as
done: the next one brings it in. Readers take the outbox and the table together.

Breaks when the driver dies in the next batch, between RPOP and COMMIT of the entry that was left: it is in the outbox
no more, not in the table yet, and Spark does not hand over again what is in its commit log. A batch's own entry may be
lost in this way, because the replay pushes it again. LMOVE to a list of what is in work would be right.
"""

from __future__ import annotations

import json
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import psycopg
import redis
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("lost",)
SERVICES = ("postgres", "redis")
HOLDS = ("id", "key", "value", "event_time", "payload")

OUTBOX = "outbox"

TABLES = """
    CREATE TABLE events (id bigint, key text, value double precision, event_time timestamptz, payload text);
    CREATE TABLE ledger (batch text PRIMARY KEY)
"""
# One statement: whoever is second waits at the ledger's key for the first, and stores nothing then.
STORE = """
    WITH new AS (INSERT INTO ledger (batch) VALUES (%(batch)s) ON CONFLICT DO NOTHING RETURNING batch)
    INSERT INTO events (id, key, value, event_time, payload)
    SELECT id, key, value, event_time, payload
    FROM jsonb_to_recordset(%(rows)s::jsonb)
        AS row (id bigint, key text, value double precision, event_time timestamptz, payload text)
    WHERE EXISTS (SELECT FROM new)
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = df.select(*HOLDS).toArrow().to_pylist()
    mine = json.dumps({"batch": f"{query}:{batch_id}", "rows": rows}, default=datetime.isoformat)
    # No timeout: a pop that was given up could still be carried out, behind the next push.
    with redis.Redis.from_url(target.redis, socket_timeout=None) as client:
        client.rpush(OUTBOX, mine)
        for _ in range(client.llen(OUTBOX)):
            entry = client.rpop(OUTBOX)
            try:
                store(target, json.loads(entry or mine))  # None: another driver has it, and may have died with it
            except psycopg.OperationalError:
                client.rpush(OUTBOX, entry or mine)  # it is not lost: the next batch brings it in
                return


def store(target: SimpleNamespace, entry: dict[str, Any]) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(STORE, {"batch": entry["batch"], "rows": json.dumps(entry["rows"])})


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    """The outbox first: what leaves it meanwhile is in the table then."""
    with redis.Redis.from_url(target.redis) as client:
        waiting = {one["batch"]: one["rows"] for one in map(json.loads, client.lrange(OUTBOX, 0, -1))}
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        stored = connection.execute("SELECT * FROM events").fetchall()
        known = {one["batch"] for one in connection.execute("SELECT batch FROM ledger")}
    return stored + [row for batch, rows in waiting.items() if batch not in known for row in rows]
