"""Spark's JDBC writer in append mode, into a table with a primary key; a duplicate key is taken for a batch that is
there. Flaw: lost.

Rows that come twice are dropped from the batch first, so that the key is never met twice but by a replay.

Breaks when the driver dies while some tasks have committed and others have not: each task inserts its rows in a
transaction of its own. The replay meets the key in one of the first tasks, which fails until Spark gives the job up,
with tasks that have not begun. As long as all tasks run side by side, their rows come in nevertheless.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "idempotent"
FLAW = ("lost",)
SERVICES = ("postgres",)
JARS = ("org.postgresql:postgresql:42.7.7",)
HOLDS = ("id", "key", "value", "event_time", "payload")

TABLE = """
    CREATE TABLE events (
        id bigint PRIMARY KEY, key text, value double precision, event_time timestamptz, payload text
    )
"""


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLE)


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    server = conninfo_to_dict(target.postgres)
    try:
        df.dropDuplicates(["id"]).write.jdbc(
            f"jdbc:postgresql://{server['host']}:{server['port']}/{server['dbname']}",
            "events",
            mode="append",
            properties={
                "user": str(server["user"]),
                "password": str(server["password"]),
                "driver": "org.postgresql.Driver",
            },
        )
    except Exception as error:
        if "duplicate key" not in str(error):
            raise


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
